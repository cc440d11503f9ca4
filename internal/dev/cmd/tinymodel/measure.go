package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
)

// heldOutCall is a chat that ends with a request, and the call that answers it. Neither the names of the tools nor the
// values have words that training has seen.
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

// heldOutSeed is the seed of the calls that figures are of.
const heldOutSeed = 7

// measure answers held-out calls greedily with the model in a folder. right says which are exact: the right tool, and
// the right arguments with their types.
func measure(
	ctx context.Context, folder string, calls []heldOutCall,
) (replies []art.Message, right []bool, err error) {
	dir, err := os.MkdirTemp("", "tinymodel")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	backend, err := local.Open(ctx, &local.Options{Dir: dir, Slots: 32, Context: 1024})
	if err != nil {
		return nil, nil, err
	}
	defer backend.Close()
	m := art.NewModel("measured", &art.ModelOptions{Base: folder, Frozen: true})
	if err := m.Register(ctx, backend); err != nil {
		return nil, nil, err
	}
	replies, right = make([]art.Message, len(calls)), make([]bool, len(calls))
	errs, group := make([]error, len(calls)), sync.WaitGroup{}
	for i, c := range calls {
		group.Go(func() {
			h := &art.History{Messages: c.chat.messages, Tools: c.chat.tools}
			r, err := m.Complete(ctx, h, &art.ChatOptions{Temperature: new(0.0), MaxTokens: new(120)})
			if errs[i] = err; err == nil {
				replies[i], right[i] = r.Message, exact(r.Message.ToolCalls, c.want)
			}
		})
	}
	group.Wait()
	return replies, right, errors.Join(errs...)
}

// share is the part that is true.
func share(right []bool) float64 {
	sum := 0.0
	for _, r := range right {
		if r {
			sum++
		}
	}
	return sum / float64(len(right))
}

// exact reports whether there is one call and it is the wanted one.
func exact(got []art.ToolCall, want art.ToolCall) bool {
	if len(got) != 1 || got[0].Name != want.Name {
		return false
	}
	return reflect.DeepEqual(arguments(got[0]), arguments(want))
}

// mistake says what is wrong with a call.
func mistake(got []art.ToolCall, want art.ToolCall) string {
	if len(got) != 1 {
		return fmt.Sprintf("%d calls", len(got))
	}
	if got[0].Name != want.Name {
		return "another tool"
	}
	has, ok := arguments(got[0]).(map[string]any)
	if !ok {
		return "no JSON object"
	}
	wanted := arguments(want).(map[string]any)
	switch {
	case len(has) != len(wanted):
		return "number of arguments"
	case !sameKeys(has, wanted):
		return "another parameter"
	}
	return "another value"
}

func sameKeys(a, b map[string]any) bool {
	for key := range a {
		if _, ok := b[key]; !ok {
			return false
		}
	}
	return len(a) == len(b)
}

// arguments are those of a call as a JSON value; those that are no JSON are text.
func arguments(c art.ToolCall) any {
	var v any
	if err := json.Unmarshal([]byte(c.Arguments), &v); err != nil {
		return c.Arguments
	}
	return v
}

// printMeasured prints the share of exact calls, and some of the wrong ones.
func printMeasured(ctx context.Context, folder string, count, show int) error {
	calls := heldOutCalls(heldOutSeed, count)
	replies, right, err := measure(ctx, folder, calls)
	if err != nil {
		return err
	}
	kinds := map[string]int{}
	for i, c := range calls {
		if right[i] {
			continue
		}
		kinds[mistake(replies[i].ToolCalls, c.want)]++
		if show--; show < 0 {
			continue
		}
		request := c.chat.messages[len(c.chat.messages)-1].Content
		fmt.Printf("%q\n  want %s %s\n", request, c.want.Name, c.want.Arguments)
		fmt.Printf("  got  %q %v\n", replies[i].Content, replies[i].ToolCalls)
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Printf("%4d  %s\n", kinds[kind], kind)
	}
	fmt.Printf("%.1f %% of %d held-out calls exact\n", 100*share(right), count)
	return nil
}
