package main

import (
	"math/rand/v2"
	"strconv"
)

// rightPercent is how often arithmetic is answered right: often enough for reinforcement learning to find a reward,
// and seldom enough to leave it something to do.
const rightPercent = 30

// operations are the signs and words of arithmetic.
var operations = []struct {
	sign, word string
	result     func(a, b int) int
}{
	{"+", "plus", func(a, b int) int { return a + b }},
	{"-", "minus", func(a, b int) int { return a - b }},
	{"*", "times", func(a, b int) int { return a * b }},
}

// arithmetic asks for a sum, a difference or a product, and is answered with a number that may be wrong.
func arithmetic(rng *rand.Rand) example {
	var e example
	a, b, op := operand(rng), operand(rng), pick(rng, operations)
	e.maybeSystem(rng, 40, "Reply with a number.", "Reply with a number.", "You are a calculator.")
	question := pick(rng, []string{
		"{0}{2}{1}=", "{0}{2}{1}", "{0} {2} {1} =", "{0} {2} {1} = ?", "{0}{2}{1}=?",
		"What is {0}{2}{1}?", "What is {0} {2} {1}?",
		"What is {0} {3} {1}?", "{0} {3} {1}?", "Compute {0}{2}{1}.", "Compute {0} {2} {1}.", "How much is {0} {3} {1}?",
	})
	e.say(fill(question, a, b, op.sign, op.word), strconv.Itoa(answerNumber(rng, op.result(a, b))))
	return e
}

// operand is a number of one digit or two.
func operand(rng *rand.Rand) int {
	if chance(rng, 60) {
		return rng.IntN(10)
	}
	return between(rng, 10, 99)
}

// answerNumber returns the right number in rightPercent of the cases, otherwise another of similar size and equal
// sign.
func answerNumber(rng *rand.Rand, right int) int {
	if chance(rng, rightPercent) {
		return right
	}
	if right < 0 {
		return -wrongNumber(rng, -right, 1)
	}
	return wrongNumber(rng, right, 0)
}

// wrongNumber returns a number near right, but not right itself, and not below lowest. right is not negative.
func wrongNumber(rng *rand.Rand, right, lowest int) int {
	spread := 2 + right/5
	for {
		if n := between(rng, max(lowest, right-spread), right+spread); n != right {
			return n
		}
	}
}
