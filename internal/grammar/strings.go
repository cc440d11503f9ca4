package grammar

import (
	"fmt"
	"slices"
	"strings"
)

// stringBounds are the constraints on one string. Patterns are expressions that match somewhere in the string.
type stringBounds struct {
	low, high int // number of code points; high -1 is without bound
	patterns  []string
}

// stringRule returns the rule of the JSON strings within bounds, which it makes if needed.
func (c *compilation) stringRule(bounds stringBounds) int32 {
	return c.shared(fmt.Sprintf("string %d %d %q", bounds.low, bounds.high, bounds.patterns), func() *dfa {
		// Quotes are put around the body, whose characters never begin with a quote.
		body := c.stringBody(bounds)
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

// shortEscapes are the characters that JSON writes with a backslash and a letter, besides the quote and the backslash.
var shortEscapes = map[rune]string{'\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}

// escapedRunes are the code points that a JSON string never holds as they are.
var escapedRunes = []runeRange{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}

var (
	digit = byteSet([2]byte{'0', '9'})
	hex   = byteSet([2]byte{'0', '9'}, [2]byte{'a', 'f'}, [2]byte{'A', 'F'})
	quote = literal(`"`)
)

// escapeRune returns the usual spelling of a code point in a JSON string.
func escapeRune(r rune) string {
	switch short, ok := shortEscapes[r]; {
	case ok:
		return short
	case r == '"' || r == '\\':
		return `\` + string(r)
	case r < 0x20:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return string(r)
}

// quoteJSON returns the usual spelling of a string: only what must be escaped is.
func quoteJSON(text string) string {
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range text {
		out.WriteString(escapeRune(r))
	}
	out.WriteByte('"')
	return out.String()
}

// stringRunes is one code point of a set within a JSON string. What must be escaped may have any escape; everything
// else is written as it is. So different code points never have the same spelling, and sets of strings can be
// intersected and subtracted as sets of spellings.
func stringRunes(set []runeRange) fragment {
	plain := runes(without(set, escapedRunes))
	return func(n *nfa, from int32) int32 {
		to := plain(n, from)
		var short, long int32 // after the backslash, and after \u00
		upper := map[rune]int32{}
		for _, special := range escapedRunes {
			for r := special.lo; r <= special.hi; r++ {
				if !contains(set, r) {
					continue
				}
				if short == 0 {
					short = literal(`\`)(n, from)
					long = literal(`u00`)(n, short)
				}
				if text := escapeRune(r); len(text) == 2 {
					n.addBytes(short, text[1], text[1], to)
				}
				if upper[r>>4] == 0 {
					upper[r>>4] = literal(string('0'+r>>4))(n, long)
				}
				n.addHexDigit(upper[r>>4], byte(r&15), to)
			}
		}
		return to
	}
}

// addHexDigit adds a hexadecimal digit in lower and upper case.
func (n *nfa) addHexDigit(from int32, digit byte, to int32) {
	if digit < 10 {
		n.addBytes(from, '0'+digit, '0'+digit, to)
		return
	}
	n.addBytes(from, 'a'+digit-10, 'a'+digit-10, to)
	n.addBytes(from, 'A'+digit-10, 'A'+digit-10, to)
}

// anyStringRune is one code point within a JSON string, in every spelling (RFC 8259, section 7). Surrogates come in
// pairs only.
var anyStringRune = anyOf(
	runes(without(anyRune, escapedRunes)),
	sequence(literal(`\`), anyOf(
		byteSet([2]byte{'"', '"'}, [2]byte{'\\', '\\'}, [2]byte{'/', '/'}, [2]byte{'b', 'b'}, [2]byte{'f', 'f'},
			[2]byte{'n', 'n'}, [2]byte{'r', 'r'}, [2]byte{'t', 't'}),
		sequence(literal("u"), anyOf(
			sequence(byteSet([2]byte{'0', '9'}, [2]byte{'a', 'c'}, [2]byte{'e', 'f'}, [2]byte{'A', 'C'}, [2]byte{'E', 'F'}),
				hex, hex, hex),
			sequence(byteSet([2]byte{'d', 'd'}, [2]byte{'D', 'D'}), byteSet([2]byte{'0', '7'}), hex, hex),
			sequence(byteSet([2]byte{'d', 'd'}, [2]byte{'D', 'D'}),
				byteSet([2]byte{'8', '9'}, [2]byte{'a', 'b'}, [2]byte{'A', 'B'}), hex, hex,
				literal(`\u`), byteSet([2]byte{'d', 'd'}, [2]byte{'D', 'D'}),
				byteSet([2]byte{'c', 'f'}, [2]byte{'C', 'F'}), hex, hex),
		)),
	)),
)

// jsonRules are the rules of JSON without a schema.
type jsonRules struct{ value, object, array int32 }

// anyJSON returns the rules of JSON without a schema, which it makes if needed. An object may repeat a key.
func (c *compilation) anyJSON(ws Whitespace) jsonRules {
	if rules, ok := c.json[ws]; ok {
		return rules
	}
	rules := jsonRules{c.newRule(), c.newRule(), c.newRule()}
	c.json[ws] = rules
	text, value := c.stringRule(stringBounds{high: -1}), call(rules.value)
	member := sequence(call(text), ws.colon(), value)
	c.define(rules.object, listOf(ws, "{", member, "}"))
	c.define(rules.array, listOf(ws, "[", value, "]"))
	c.define(rules.value, anyOf(call(text), call(c.numberRule(numberBounds{})), call(rules.object), call(rules.array),
		literal("true"), literal("false"), literal("null")))
	return rules
}

// listOf is any number of elements between brackets.
func listOf(ws Whitespace, open string, element fragment, end string) fragment {
	some := sequence(element, repeat(sequence(ws.comma(), element), 0, -1), ws.bracket())
	return sequence(literal(open), ws.bracket(), optional(some), literal(end))
}

// Whitespace says where JSON text has whitespace. There is none before and after a document.
type Whitespace int

const (
	// SingleSpaces is one space after each comma and colon, as Python's json.dumps and most models write.
	SingleSpaces Whitespace = iota
	// NoSpaces is none, as Go's encoding/json writes.
	NoSpaces
	// AnySpaces is up to MaxSpaces characters wherever JSON allows it. A model then chooses among more spellings,
	// which says nothing about what it means to say.
	AnySpaces
)

// MaxSpaces bounds one run of whitespace with AnySpaces; otherwise a model could write whitespace for ever.
const MaxSpaces = 32

var spaces = repeat(byteSet([2]byte{'\t', '\n'}, [2]byte{'\r', '\r'}, [2]byte{' ', ' '}), 0, MaxSpaces)

// comma separates elements.
func (w Whitespace) comma() fragment { return w.around(",") }

// colon separates a key from its value.
func (w Whitespace) colon() fragment { return w.around(":") }

func (w Whitespace) around(separator string) fragment {
	switch w {
	case NoSpaces:
		return literal(separator)
	case AnySpaces:
		return sequence(spaces, literal(separator), spaces)
	}
	return literal(separator + " ")
}

// bracket is the whitespace after an opening and before a closing bracket.
func (w Whitespace) bracket() fragment {
	if w == AnySpaces {
		return spaces
	}
	return nothing
}
