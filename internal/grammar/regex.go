package grammar

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// jsEscape finds the escapes of ECMAScript that Go writes in another way, and passes over other escapes.
var jsEscape = regexp.MustCompile(`\\(?:u\{([0-9A-Fa-f]+)\}|u([0-9A-Fa-f]{4})|[^u])`)

// jsSurrogate finds half of a character beyond U+FFFF.
var jsSurrogate = regexp.MustCompile(`\\u[dD][89a-fA-F][0-9a-fA-F]{2}`)

// runeText makes the fragment of one code point of a set, in the encoding of the text around it.
type runeText func(set []runeRange) fragment

// parsePattern parses a regular expression in the syntax of Go's package regexp, to which \uXXXX and \u{X} are added.
// Look-around, back references, word boundaries and flags that change ^ and $ are errors.
func parsePattern(pattern string) (*syntax.Regexp, error) {
	if surrogate := jsSurrogate.FindString(pattern); surrogate != "" {
		return nil, fmt.Errorf(`pattern %q: write \u{X} instead of the surrogate %s`, pattern, surrogate)
	}
	rewritten := jsEscape.ReplaceAllStringFunc(pattern, func(found string) string {
		groups := jsEscape.FindStringSubmatch(found)
		if hex := groups[1] + groups[2]; hex != "" {
			return `\x{` + hex + `}`
		}
		return found
	})
	re, err := syntax.Parse(rewritten, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w; the syntax is that of Go's package regexp", pattern, err)
	}
	if op, ok := findUnsupported(re); ok {
		return nil, fmt.Errorf("pattern %q: %v is not supported", pattern, op)
	}
	return re, nil
}

// findUnsupported returns an operator that no automaton here expresses.
func findUnsupported(re *syntax.Regexp) (syntax.Op, bool) {
	switch re.Op {
	case syntax.OpWordBoundary, syntax.OpNoWordBoundary, syntax.OpBeginLine, syntax.OpEndLine:
		return re.Op, true
	}
	for _, sub := range re.Sub {
		if op, ok := findUnsupported(sub); ok {
			return op, true
		}
	}
	return 0, false
}

// pattern is the texts that an expression matches as a whole, if its assertions ^ and $ hold in the whole automaton.
func pattern(re *syntax.Regexp, text runeText) fragment {
	switch re.Op {
	case syntax.OpNoMatch:
		return never
	case syntax.OpEmptyMatch:
		return nothing
	case syntax.OpLiteral:
		// In any case of its letters, if the expression says so.
		parts := make([]fragment, len(re.Rune))
		for i, r := range re.Rune {
			set := []runeRange{{r, r}}
			if re.Flags&syntax.FoldCase != 0 {
				for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
					set = append(set, runeRange{other, other})
				}
			}
			parts[i] = text(set)
		}
		return sequence(parts...)
	case syntax.OpCharClass:
		set := make([]runeRange, 0, len(re.Rune)/2)
		for pair := range slices.Chunk(re.Rune, 2) {
			set = append(set, runeRange{pair[0], pair[1]})
		}
		return text(set)
	case syntax.OpAnyChar:
		return text(anyRune)
	case syntax.OpAnyCharNotNL:
		return text(without(anyRune, []runeRange{{'\n', '\n'}}))
	case syntax.OpBeginText:
		return assertBegin
	case syntax.OpEndText:
		return assertEnd
	}
	parts := make([]fragment, len(re.Sub))
	for i, sub := range re.Sub {
		parts[i] = pattern(sub, text)
	}
	switch re.Op {
	case syntax.OpAlternate:
		return anyOf(parts...)
	case syntax.OpStar:
		return repeat(parts[0], 0, -1)
	case syntax.OpPlus:
		return repeat(parts[0], 1, -1)
	case syntax.OpQuest:
		return optional(parts[0])
	case syntax.OpRepeat:
		return repeat(parts[0], re.Min, re.Max)
	case syntax.OpConcat, syntax.OpCapture:
		return sequence(parts...)
	}
	panic(fmt.Sprintf("grammar: operator %v passed findUnsupported", re.Op))
}

// assertBegin is the empty text at the beginning.
func assertBegin(n *nfa, from int32) int32 {
	to := n.add()
	n.states[from].begin = append(n.states[from].begin, to)
	return to
}

// assertEnd is the empty text at the end.
func assertEnd(n *nfa, from int32) int32 {
	to := n.add()
	n.states[from].end = append(n.states[from].end, to)
	return to
}

// The parts of formats (RFC 3339, appendix A; RFC 3986, appendix A; RFC 1123, section 2.1).
const (
	formatDate = `(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|` +
		`02-(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`
	formatClock    = `(?:[01]\d|2[0-3]):[0-5]\d`
	formatTime     = formatClock + `:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]` + formatClock + `)`
	formatLabel    = `[A-Za-z0-9](?:[A-Za-z0-9-]{0,28}[A-Za-z0-9])?`
	formatHost     = formatLabel + `(?:\.` + formatLabel + `){0,7}`
	formatByte     = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	formatIPv4     = formatByte + `(?:\.` + formatByte + `){3}`
	formatDuration = `P(?:\d{1,9}W|(?:\d{1,9}Y(?:\d{1,9}M(?:\d{1,9}D)?)?|\d{1,9}M(?:\d{1,9}D)?|\d{1,9}D)(?:T` +
		formatHours + `)?|T` + formatHours + `)`
	formatHours = `(?:\d{1,9}H(?:\d{1,9}M(?:\d{1,9}S)?)?|\d{1,9}M(?:\d{1,9}S)?|\d{1,9}S)`
	formatURI   = `[A-Za-z][A-Za-z0-9+.-]{0,31}:(?://` + formatHost + `(?::\d{1,5})?)?` +
		`(?:/(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})+)*/?` +
		`(?:\?(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?(?:#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?`
)

// formats are expressions for the formats of JSON Schema. Each allows some of what its standard allows, never more: no
// leap seconds, no quoted names and comments in mail addresses, and names of up to eight labels of 30 characters.
var formats = map[string]string{
	"date":      formatDate,
	"time":      formatTime,
	"date-time": formatDate + `T` + formatTime,
	"duration":  formatDuration,
	"email":     `[A-Za-z0-9_+-]{1,30}(?:\.[A-Za-z0-9_+-]{1,30})?@` + formatHost,
	"hostname":  formatHost,
	"ipv4":      formatIPv4,
	"ipv6":      formatIPv6(),
	"uuid":      `[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}`,
	"uri":       formatURI,
}

// formatIPv6 is the eight groups of an address, or fewer with one gap (RFC 4291, section 2.2).
func formatIPv6() string {
	const group = `[0-9a-fA-F]{1,4}`
	forms := []string{`(?:` + group + `:){7}` + group, `::`, `(?:` + group + `:){1,7}:`}
	for before := 0; before <= 6; before++ {
		left := ":"
		if before > 0 {
			left = `(?:` + group + `:){` + string(rune('0'+before)) + `}`
		}
		forms = append(forms, left+`(?::`+group+`){1,`+string(rune('0'+7-before))+`}`)
	}
	return `(?:` + strings.Join(forms, `|`) + `)`
}
