package grammar

import (
	"fmt"
	"slices"
)

// stringBounds are the constraints on one string. Patterns are expressions that match somewhere in the string.
type stringBounds struct {
	low, high int // number of code points; high -1 is without bound
	patterns  []string
}

// stringRule returns the rule of the JSON strings within bounds, which it makes if needed.
func (c *compilation) stringRule(bounds stringBounds) int32 {
	return c.shared(fmt.Sprintf("string %d %d %q", bounds.low, bounds.high, bounds.patterns), func() *dfa {
		return quoted(c.stringBody(bounds))
	})
}

// stringBody is a string without its quotes. With patterns, characters that need no escape have none.
func (c *compilation) stringBody(bounds stringBounds) *dfa {
	if bounds.high >= 0 && bounds.low > bounds.high {
		return build(never, c.budget)
	}
	if len(bounds.patterns) == 0 {
		return c.counted(anyStringRune, bounds)
	}
	var parts []*dfa
	for _, source := range bounds.patterns {
		re, err := parsePattern(source)
		if err != nil {
			panic(fmt.Sprintf("grammar: pattern was not checked: %v", err))
		}
		some := repeat(stringRunes(anyRune), 0, -1)
		parts = append(parts, build(sequence(some, pattern(re, stringRunes), some), c.budget))
	}
	if bounds.low > 0 || bounds.high >= 0 {
		parts = append(parts, c.counted(stringRunes(anyRune), bounds))
	}
	return intersect(c.budget, parts...)
}

// counted is a string of a number of characters. No spelling of a character is the beginning of another, so that copies
// of the automaton of one character, each continued by the next, are deterministic.
func (c *compilation) counted(character fragment, bounds stringBounds) *dfa {
	c.budget.checkRepeat(max(bounds.low, bounds.high), "minLength or maxLength of")
	one := build(character, c.budget)
	result := &dfa{}
	copies := max(bounds.low, bounds.high)
	for i := range copies {
		c.appendCharacter(result, one, int32((i+1)*one.inner()), i >= bounds.low)
	}
	last := int32(copies * one.inner())
	if bounds.high < 0 {
		c.appendCharacter(result, one, last, true)
		return result
	}
	c.budget.addState()
	result.states = append(result.states, dfaState{final: true})
	return result
}

// inner returns the number of states of a character that are not its end.
func (d *dfa) inner() int {
	n := 0
	for _, state := range d.states {
		if !state.final {
			n++
		}
	}
	return n
}

// appendCharacter appends a copy of the automaton of a character whose end is the state next.
func (c *compilation) appendCharacter(result, one *dfa, next int32, final bool) {
	moved, at := make([]int32, len(one.states)), int32(len(result.states))
	for i, state := range one.states {
		moved[i] = next
		if !state.final {
			moved[i] = at
			at++
		}
	}
	for i, state := range one.states {
		if state.final {
			continue
		}
		c.budget.addState()
		edges := make([]byteEdge, len(state.bytes))
		for k, e := range state.bytes {
			edges[k] = byteEdge{e.lo, e.hi, moved[e.to]}
		}
		result.states = append(result.states, dfaState{final: final && i == 0, bytes: edges})
	}
}

// quoted puts quotes around the body of a string, whose characters never begin with a quote.
func quoted(body *dfa) *dfa {
	end := int32(len(body.states) + 1)
	result := &dfa{states: []dfaState{{bytes: []byteEdge{{'"', '"', 1}}}}}
	for _, state := range body.states {
		var edges []byteEdge
		for _, e := range state.bytes {
			edges = append(edges, byteEdge{e.lo, e.hi, e.to + 1})
		}
		if state.final {
			at, _ := slices.BinarySearchFunc(edges, byte('"'), func(e byteEdge, b byte) int { return int(e.lo) - int(b) })
			edges = slices.Insert(edges, at, byteEdge{'"', '"', end})
		}
		result.states = append(result.states, dfaState{bytes: edges})
	}
	result.states = append(result.states, dfaState{final: true})
	return result
}

// otherKeys is the JSON strings that are none of the keys.
func otherKeys(keys []string) fragment {
	sorted := slices.Clone(keys)
	slices.Sort(sorted)
	return sequence(quote, otherSuffix(slices.Compact(sorted)), quote)
}

// otherSuffix is the text up to the closing quote that is none of the suffixes, which are sorted.
func otherSuffix(suffixes []string) fragment {
	if len(suffixes) == 0 {
		return repeat(stringRunes(anyRune), 0, -1)
	}
	byRune := map[rune][]string{}
	var first []runeRange
	for _, suffix := range suffixes {
		for i, r := range suffix {
			if i == 0 {
				if byRune[r] == nil {
					first = append(first, runeRange{r, r})
				}
				byRune[r] = append(byRune[r], suffix[len(string(r)):])
			}
		}
	}
	slices.SortFunc(first, func(a, b runeRange) int { return int(a.lo - b.lo) })
	parts := []fragment{sequence(stringRunes(without(anyRune, first)), repeat(stringRunes(anyRune), 0, -1))}
	for _, r := range first {
		parts = append(parts, sequence(stringRunes([]runeRange{r}), otherSuffix(byRune[r.lo])))
	}
	if suffixes[0] != "" {
		parts = append(parts, nothing)
	}
	return anyOf(parts...)
}
