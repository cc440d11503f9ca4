package main

import (
	"math"
	"math/rand/v2"

	"github.com/goart-dev/art"
)

// example is a chat whose assistant messages the tiny model learns to write.
type example struct {
	messages []art.Message
	tools    []art.Tool // offered to the assistant; nil for none
}

// mixture is what the model is made of. The weights are percents of the chats. Tic-tac-toe is the game of the
// examples, and its boards take the longest to learn; a line of arithmetic or of yes and no is short and soon
// learned.
var mixture = []struct {
	weight   int
	generate func(*rand.Rand) example
}{
	{32, ticTacToe},
	{8, arithmetic},
	{8, yesNo},
	{10, instruction},
	{38, toolChat},
	{4, talk},
}

// generate draws a chat. It is a function of the state of rng.
func generate(rng *rand.Rand) example {
	left := rng.IntN(totalWeight())
	for _, part := range mixture {
		if left -= part.weight; left < 0 {
			return part.generate(rng)
		}
	}
	panic("tinymodel: the weights do not add up")
}

func totalWeight() int {
	total := 0
	for _, part := range mixture {
		total += part.weight
	}
	return total
}

// corpus returns the texts of n chats, to learn a vocabulary from. They are not the chats that training draws.
func corpus(seed uint64, n int) []string {
	rng := rand.New(rand.NewPCG(seed, math.MaxUint64))
	var texts []string
	for range n {
		texts = append(texts, generate(rng).texts()...)
	}
	return texts
}

// texts returns what a chat template writes between the control tokens.
func (e example) texts() []string {
	var out []string
	if len(e.tools) > 0 {
		out = append(out, toolPreamble)
	}
	for _, t := range e.tools {
		out = append(out, toolText(t))
	}
	for _, m := range e.messages {
		out = append(out, roleText(m.Role), m.Content)
		for _, c := range m.ToolCalls {
			out = append(out, callText(c))
		}
	}
	return out
}

// roleText is the head of a turn. The result of a tool is a turn of the user.
func roleText(r art.Role) string {
	if r == art.RoleTool {
		return "user\n"
	}
	return string(r) + "\n"
}

// add appends messages.
func (e *example) add(messages ...art.Message) { e.messages = append(e.messages, messages...) }

// say appends a question and its answer.
func (e *example) say(user, assistant string) { e.add(art.User(user), art.Assistant(assistant)) }

// maybeSystem begins the chat with one of the contents, in percent of the cases.
func (e *example) maybeSystem(rng *rand.Rand, percent int, contents ...string) {
	if chance(rng, percent) {
		e.add(art.System(pick(rng, contents)))
	}
}

// pick returns one of the items, each as likely as the others.
func pick[T any](rng *rand.Rand, items []T) T { return items[rng.IntN(len(items))] }

// chance is true in percent of the cases.
func chance(rng *rand.Rand, percent int) bool { return rng.IntN(100) < percent }

// between returns a number of [lo, hi], each as likely as the others.
func between(rng *rand.Rand, lo, hi int) int { return lo + rng.IntN(hi-lo+1) }
