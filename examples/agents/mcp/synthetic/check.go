package synthetic

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents/mcp"
	"github.com/goart-dev/art/ruler"
)

// Parts of the score of a trajectory that does not solve its scenario.
const (
	callCredit     = 0.1 // a call was carried out
	doneCredit     = 0.4 // what was wanted was done, or the answer was seen
	completeCredit = 0.1 // the task was completed
)

// Checker returns the exact checker for the worlds of a seed. A scenario is solved, which scores 1, when
//
//   - the task was completed,
//   - the data is as the wanted calls leave it,
//   - the summary says the wanted answer, and no other id, number or status,
//   - and the answer was seen in the result of a call: it was not guessed.
//
// What does not solve it scores 0 to 0.6, by how far it came.
func (d Domain) Checker(seed uint64) mcp.Checker {
	return func(_ context.Context, s mcp.Scenario, t *art.Trajectory) (float64, error) {
		if s.Want == nil {
			return 0, fmt.Errorf("scenario %s says not what is wanted", s.ID)
		}
		made, results := d.replay(seed, t)
		summary, completed := mcp.Summary(t)
		return d.Score(seed, s, &Run{World: made, Results: results, Summary: summary, Completed: completed})
	}
}

// Run is what an agent has done.
type Run struct {
	World   World    // what became of the data
	Results []string // of the calls that were no errors
	Summary string   // what the agent said in the end
	// Completed tells that the agent came to an end of its own.
	Completed bool
}

// Score is what a run in the world of a seed earns, by the rules of [Domain.Checker].
func (d Domain) Score(seed uint64, s mcp.Scenario, r *Run) (float64, error) {
	wanted := d.New(seed)
	for _, c := range s.Want.Calls {
		if _, err := wanted.Call(c.Tool, c.Args); err != nil {
			return 0, fmt.Errorf("scenario %s: %w", s.ID, err)
		}
	}
	done := r.World.Equal(wanted)
	if s.Want.Answer != "" {
		done = done && slices.ContainsFunc(r.Results, func(text string) bool { return has(text, s.Want.Answer) })
	}
	if done && r.Completed && says(r.Summary, s) {
		return 1, nil
	}
	score := 0.0
	for _, part := range []struct {
		ok    bool
		value float64
	}{{len(r.Results) > 0, callCredit}, {done && len(r.Results) > 0, doneCredit}, {r.Completed, completeCredit}} {
		if part.ok {
			score += part.value
		}
	}
	return score, nil
}

// replay carries out the calls of a trajectory up to complete_task, and returns what became of the data, and the
// results of those that were no errors.
func (d Domain) replay(seed uint64, t *art.Trajectory) (w World, results []string) {
	w = d.New(seed)
	for _, m := range t.Messages {
		for _, c := range m.ToolCalls {
			if c.Name == mcp.CompleteTool {
				var args struct{ Summary *string }
				if json.Unmarshal([]byte(c.Arguments), &args) == nil && args.Summary != nil {
					return w, results
				}
				continue
			}
			if text, err := carryOut(w, c.Name, json.RawMessage(c.Arguments)); err == nil {
				results = append(results, text)
			}
		}
	}
	return w, results
}

// says tells whether a summary has the wanted answer, and nothing that might be one and is wrong: a word with a digit,
// or a status, that neither the answer nor the task has.
func says(summary string, s mcp.Scenario) bool {
	if s.Want.Answer == "" {
		return true
	}
	for _, word := range terms(summary) {
		candidate := strings.ContainsFunc(word, unicode.IsDigit) || slices.Contains(statuses, word)
		if candidate && !has(s.Want.Answer, word) && !has(s.Task, word) {
			return false
		}
	}
	return has(summary, s.Want.Answer)
}

// has tells whether a text has the terms of another one after another.
func has(text, part string) bool {
	return strings.Contains(" "+strings.Join(terms(text), " ")+" ", " "+strings.Join(terms(part), " ")+" ")
}

// terms are the words of a text in lower case. A colon between digits is part of a word.
func terms(text string) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != ':'
	})
	for i, w := range words {
		words[i] = strings.Trim(w, ":")
	}
	return words
}

// Oracle writes replies that solve scenarios, which it knows by their tasks: what can be reached, and what to learn
// from. It is the Reply of a fake backend.
func Oracle(lists ...[]mcp.Scenario) func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
	byTask := map[string]mcp.Scenario{}
	for _, list := range lists {
		for _, s := range list {
			byTask[s.Task] = s
		}
	}
	return func(_ context.Context, _ *art.Model, r *art.ChatRequest) (art.Message, error) {
		replies := 0
		for _, m := range r.Messages {
			if m.Role == art.RoleAssistant {
				replies++
			}
		}
		s, ok := byTask[r.Messages[1].Content]
		if !ok || s.Want == nil {
			return art.Message{}, fmt.Errorf("the oracle does not know the task %q", r.Messages[1].Content)
		}
		call := mcp.Call{Tool: mcp.CompleteTool, Args: map[string]string{"summary": s.Want.Answer}}
		if s.Want.Answer == "" {
			call.Args["summary"] = "done"
		}
		if replies < len(s.Want.Calls) {
			call = s.Want.Calls[replies]
		}
		return CallMessage(fmt.Sprintf("call_%d", replies+1), call)
	}
}

// CallMessage is a reply with one call.
func CallMessage(id string, call mcp.Call) (art.Message, error) {
	args, err := json.Marshal(call.Args)
	return art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{
		{ID: id, Name: call.Tool, Arguments: string(args)},
	}}, err
}

// Noisy returns a judge that knows what the checker says and errs: a share of its scores are chance, and the others are
// off by a tenth or so. Its errors are a function of the ids that package ruler draws.
func Noisy(share float64) ruler.JudgeFunc {
	return func(_ context.Context, items []ruler.Item) ([]ruler.Rating, error) {
		var ratings []ruler.Rating
		for _, item := range items {
			h := fnv.New64a()
			h.Write([]byte(item.ID))
			rng := rand.New(rand.NewPCG(h.Sum64(), uint64(len(items))))
			score := item.Trajectory.Reward + 0.1*rng.NormFloat64()
			if rng.Float64() < share {
				score = rng.Float64()
			}
			ratings = append(ratings, ruler.Rating{ID: item.ID, Explanation: "a guess", Score: min(1, max(0, score))})
		}
		return ratings, nil
	}
}
