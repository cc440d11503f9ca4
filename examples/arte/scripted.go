package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

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

// careless is how the tools are used, without the skill: of the messages found it reads any, each as likely as the
// others, and it answers what that message says, or that it doesn't know.
func careless(q mailbox.Question, rng *rand.Rand) policy {
	return func(_ context.Context, h *art.History) (art.Message, error) {
		var m struct{ ID, Text string }
		last := h.Messages[len(h.Messages)-1].Content
		switch len(h.Messages) {
		case 2:
			return called(2, "search", "query", q.Keywords), nil
		case 4:
			hits := strings.Split(last, "\n")
			err := json.Unmarshal([]byte(hits[rng.IntN(len(hits))]), &m)
			return called(4, "read", "id", m.ID), err
		}
		err := json.Unmarshal([]byte(last), &m)
		number := dontKnow
		if _, says, ok := strings.Cut(m.Text, " is "); ok {
			number = strings.TrimSuffix(says, ".")
		}
		return called(6, "answer", "number", number, "id", m.ID), err
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
