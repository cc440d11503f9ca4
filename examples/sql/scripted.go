package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/sql/world"
)

// oracle does what is best: it knows the right query. So it shows what can be reached.
func oracle(q *world.Question) policy { return writer(q.Query) }

// careless is how the tool is used, without the conventions: its query follows some of them, each set as likely as the
// others.
func careless(q *world.Question, rng *rand.Rand) policy {
	if i := rng.IntN(1 + len(q.Misses)); i < len(q.Misses) {
		return writer(q.Misses[i].Query)
	}
	return writer(q.Query)
}

// guesser answers what most questions of its kind might have as answer, after a query that has nothing to do with it.
func guesser(q *world.Question, rng *rand.Rand) policy {
	guess := strconv.Itoa(8 + rng.IntN(40))
	if q.Names != nil {
		guess = q.Names[rng.IntN(len(q.Names))]
	}
	next, wrote := writer("SELECT 1"), false
	return func(ctx context.Context, h *art.History) (art.Message, error) {
		if wrote {
			return art.Assistant(guess), nil
		}
		wrote = true
		return next(ctx, h)
	}
}

// writer runs a query, once, and answers with the first line of what it gives.
func writer(query string) policy {
	wrote := false
	return func(_ context.Context, h *art.History) (art.Message, error) {
		if n := len(h.Messages); wrote {
			return art.Assistant(h.Messages[n-1].Content), nil
		}
		wrote = true
		return called(len(h.Messages), query), nil
	}
}

// called is a message with a query: in a block, or a call of the tool; at tells calls of a chat apart.
func called(at int, query string) art.Message {
	if inText {
		return art.Assistant("```sql\n" + query + "\n```")
	}
	arguments, _ := json.Marshal(map[string]string{"sql": query}) // strings
	return art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{
		ID: "call_" + strconv.Itoa(at), Name: "query", Arguments: string(arguments),
	}}}
}
