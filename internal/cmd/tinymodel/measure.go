package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
)

// heldOutCall is a chat that ends with a request, and the call that answers it. Neither the names of the tools nor the values
// have words that training has seen.
type heldOutCall struct {
	chat example
	want art.ToolCall
}

// heldOutCalls draws n of them: one to six tools, and up to two calls before.
func heldOutCalls(seed uint64, n int) []heldOutCall {
	rng := rand.New(rand.NewPCG(seed, 0x4e57))
	out := make([]heldOutCall, n)
	for i := range out {
		e := heldOut.chat(rng, between(rng, 1, 6), between(rng, 1, 3))
		last := len(e.messages) - 3
		out[i] = heldOutCall{example{e.messages[:last], e.tools}, e.messages[last].ToolCalls[0]}
	}
	return out
}

// measure returns the share of held-out calls that the model in a folder makes exactly: the right tool, and the right
// arguments with their types. Every call is greedy.
func measure(ctx context.Context, folder string, calls []heldOutCall, show int) (float64, error) {
	dir, err := os.MkdirTemp("", "tinymodel")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	backend, err := local.Open(ctx, &local.Options{Dir: folder + "/runs", Slots: 32, Context: 1024})
	if err != nil {
		return 0, err
	}
	defer backend.Close()
	m := art.NewModel("measured", &art.ModelOptions{Base: folder, Frozen: true})
	if err := m.Register(ctx, backend); err != nil {
		return 0, err
	}
	right, errs, group := make([]bool, len(calls)), make([]error, len(calls)), sync.WaitGroup{}
	wrong := make([]string, len(calls))
	for i, c := range calls {
		group.Go(func() {
			h := &art.History{Messages: c.chat.messages, Tools: c.chat.tools}
			r, err := m.Complete(ctx, h, &art.ChatOptions{Temperature: new(0.0), MaxTokens: new(90)})
			if err != nil {
				errs[i] = err
				return
			}
			right[i] = exact(r.Message.ToolCalls, c.want)
			if !right[i] {
				wrong[i] = fmt.Sprintf("%q\n   want %s %s\n   got  %q %v", c.chat.messages[len(c.chat.messages)-1].Content, c.want.Name, c.want.Arguments, r.Message.Content, r.Message.ToolCalls)
			}
		})
	}
	group.Wait()
	sum := 0.0
	for i := range calls {
		if errs[i] != nil {
			return 0, errs[i]
		}
		if right[i] {
			sum++
		} else if show > 0 {
			show--
			fmt.Println(wrong[i])
		}
	}
	return sum / float64(len(calls)), nil
}

// exact reports whether there is one call and it is the wanted one.
func exact(got []art.ToolCall, want art.ToolCall) bool {
	if len(got) != 1 || got[0].Name != want.Name {
		return false
	}
	var a, b any
	return json.Unmarshal([]byte(got[0].Arguments), &a) == nil && json.Unmarshal([]byte(want.Arguments), &b) == nil && reflect.DeepEqual(a, b)
}

// printMeasured prints what measure returns, and some of the wrong calls.
func printMeasured(ctx context.Context, folder string, count, show int) error {
	share, err := measure(ctx, folder, heldOutCalls(7, count), show)
	if err == nil {
		fmt.Printf("%.1f %% of %d held-out calls exact\n", 100*share, count)
	}
	return err
}
