package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/arte/mailbox"
)

// oracle does what is best: it knows the question as the generator made it. So it shows what can be reached.
func oracle(q mailbox.Question) policy {
	return func(_ context.Context, h *art.History) (art.Message, error) {
		switch len(h.Messages) {
		case 2:
			args := []string{"query", q.Keywords}
			if q.From != "" {
				args = append(args, "from", q.From, "after", q.After, "before", q.Before)
			}
			return called(len(h.Messages), "search", args...), nil
		case 4:
			return called(len(h.Messages), "read", "id", q.Source), nil
		}
		return called(len(h.Messages), "answer", "number", q.Answer, "id", q.Source), nil
	}
}

// chance is the agent that writes valid calls and knows nothing: it shows what luck is worth.
func chance(rng *rand.Rand) policy {
	return func(_ context.Context, h *art.History) (art.Message, error) {
		turn, number, id := len(h.Messages), strconv.Itoa(100+rng.IntN(900)), strconv.Itoa(1000+rng.IntN(9000))
		switch rng.IntN(3) {
		case 0:
			return called(turn, "search", "query", number), nil
		case 1:
			return called(turn, "read", "id", id), nil
		}
		return called(turn, "answer", "number", number, "id", id), nil
	}
}

// called is a message with one tool call. Arguments are names and values in turn.
func called(turn int, name string, args ...string) art.Message {
	text := ""
	for i := 0; i < len(args); i += 2 {
		value, _ := json.Marshal(args[i+1]) // a string
		text += fmt.Sprintf(`, %q: %s`, args[i], value)
	}
	return art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{
		ID: "call_" + strconv.Itoa(turn), Name: name, Arguments: "{" + text[2:] + "}",
	}}}
}
