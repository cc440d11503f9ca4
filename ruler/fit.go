package ruler

import (
	"fmt"
	"unicode/utf8"

	"github.com/goart-dev/art"
)

// shortest is the length, in characters, below which no text is cut.
const shortest = 64

// fit writes the prompt such that it has at most the tokens of the judge's context: tool results are cut to the largest
// length that fits, and if that is not enough all other messages are. An [art.ErrContextLength] is the error where
// nothing fits.
func (r *Ruler) fit(a *ask) ([]art.Message, error) {
	fits := func(l limits) bool { return r.tokens(a, l) <= r.opts.Context }
	if fits(limits{}) {
		return a.messages(limits{})
	}
	tools, others := a.longest()
	if l := (limits{tools: shortest}); fits(l) {
		return a.messages(limits{tools: largest(shortest, tools, func(n int) bool { return fits(limits{tools: n}) })})
	}
	if !fits(limits{shortest, shortest}) {
		err := fmt.Errorf("%w: %d trajectories with texts of %d characters take %d tokens, the judge has %d",
			art.ErrContextLength,
			len(a.items), shortest, r.tokens(a, limits{shortest, shortest}), r.opts.Context)
		return nil, &art.Error{Op: "judge", Err: err,
			Hint: "raise Options.Context if the judge has more, or take a judge that has"}
	}
	return a.messages(limits{shortest, largest(shortest, others, func(n int) bool { return fits(limits{shortest, n}) })})
}

// largest returns the largest n of [lo, hi] that is ok, where lo is, and what is larger than one that is not is not.
func largest(lo, hi int, ok func(int) bool) int {
	for lo < hi {
		middle := lo + (hi-lo+1)/2
		if ok(middle) {
			lo = middle
		} else {
			hi = middle - 1
		}
	}
	return lo
}

// tokens counts those of a prompt.
func (r *Ruler) tokens(a *ask, l limits) int {
	messages, err := a.messages(l)
	if err != nil {
		return 0 // and the error comes again where the prompt is used
	}
	n := 0
	for i := range messages {
		n += r.opts.CountTokens(messages[i].Content)
	}
	return n
}

// longest returns the most characters of a tool result and of another message.
func (a *ask) longest() (tools, others int) {
	tools, others = shortest, shortest
	for _, item := range a.items {
		for _, h := range item.Trajectory.Histories() {
			for i := range h.Messages {
				n := utf8.RuneCountInString(h.Messages[i].Content)
				if h.Messages[i].Role == art.RoleTool {
					tools = max(tools, n)
				} else {
					others = max(others, n)
				}
			}
		}
	}
	return tools, others
}
