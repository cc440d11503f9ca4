package grammar

import (
	"fmt"
	"strings"
)

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
		n.addEscapes(from, to, set)
		return to
	}
}

// addEscapes adds every escape of the code points of a set that must be escaped.
func (n *nfa) addEscapes(from, to int32, set []runeRange) {
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
