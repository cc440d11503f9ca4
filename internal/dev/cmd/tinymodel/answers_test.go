package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lastPair returns the last question and its answer.
func lastPair(e example) (question, answer string) {
	n := len(e.messages)
	return e.messages[n-2].Content, e.messages[n-1].Content
}

var operation = regexp.MustCompile(`(\d+) ?(\+|-|\*|plus|minus|times) ?(\d+)`)

func TestArithmetic_RightFraction(t *testing.T) {
	const n = 20_000
	right := 0
	for _, e := range draws(n, arithmetic) {
		question, answer := lastPair(e)
		parts := operation.FindStringSubmatch(question)
		if parts == nil {
			t.Fatalf("%q asks for nothing", question)
		}
		want, got := compute(number(t, parts[1]), number(t, parts[3]), parts[2]), number(t, answer)
		if got == want {
			right++
		}
		if off := max(got-want, want-got); off > 2+max(want, -want)/5 || (got < 0) != (want < 0) {
			t.Fatalf("%q is answered %d: not plausible", question, got)
		}
	}
	if right < n*28/100 || right > n*32/100 {
		t.Errorf("%d of %d answers are right, want 30%%", right, n)
	}
}

func compute(a, b int, op string) int {
	switch op {
	case "+", "plus":
		return a + b
	case "-", "minus":
		return a - b
	}
	return a * b
}

// TestYesNo checks that the answer is one of the words offered, whichever its place.
func TestYesNo(t *testing.T) {
	word := regexp.MustCompile(`\b(yes|no|maybe)\b`)
	places, words := map[int][]int{}, map[int][]int{}
	distinct := map[string]bool{}
	for _, e := range draws(30_000, yesNo) {
		question, answer := lastPair(e)
		distinct[question] = true
		offered := word.FindAllString(strings.ToLower(question), -1)
		i := slices.Index(offered, answer)
		if len(offered) < 2 || i < 0 {
			t.Fatalf("%q is answered %q", question, answer)
		}
		count(places, len(offered), i, len(offered))
		if len(offered) == 3 {
			count(words, 3, slices.Index([]string{"yes", "no", "maybe"}, answer), 3)
		}
	}
	checkUniform(t, "place of two", places[2])
	checkUniform(t, "place of three", places[3])
	checkUniform(t, "word of three", words[3])
	if len(distinct) < 1000 {
		t.Errorf("only %d wordings", len(distinct))
	}
}

func TestPickWord_FromList(t *testing.T) {
	for _, e := range draws(5000, pickWord) {
		question, answer := lastPair(e)
		if !regexp.MustCompile(`\b` + answer + `\b`).MatchString(question) {
			t.Fatalf("%q is answered %q", question, answer)
		}
	}
}

func TestRepeatWord_Exact(t *testing.T) {
	for _, e := range draws(5000, repeatWord) {
		question, answer := lastPair(e)
		if before, _, ok := strings.Cut(question, answer); !ok || before == "" {
			t.Fatalf("%q is answered %q", question, answer)
		}
	}
}

func TestPlaceOfWord(t *testing.T) {
	for _, e := range draws(5000, placeOfWord) {
		question, answer := lastPair(e)
		list := strings.TrimRight(question[strings.Index(question, ": ")+2:], "?")
		stands := strings.HasSuffix
		if strings.Contains(question, "first") {
			stands = strings.HasPrefix
		}
		if !stands(list, answer) {
			t.Fatalf("%q is answered %q", question, answer)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		from, to int
		want     string
	}{{1, 5, "1 2 3 4 5"}, {9, 11, "9 10 11"}, {3, 1, "3 2 1"}, {2, 2, "2"}} {
		if got := numbers(c.from, c.to); got != c.want {
			t.Errorf("from %d to %d: %q", c.from, c.to, got)
		}
	}
}

func TestCountUp(t *testing.T) {
	for _, e := range draws(2000, countUp) {
		question, answer := lastPair(e)
		limits, counted := digits.FindAllString(question, -1), strings.Fields(answer)
		if !slices.Contains(limits, counted[len(counted)-1]) && !strings.Contains(question, "down") {
			t.Fatalf("%q is answered %q", question, answer)
		}
	}
}
