package grammar

import (
	"fmt"
	"regexp"
	"regexp/syntax"
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
		return patternLiteral(re, text)
	case syntax.OpCharClass:
		return text(classRanges(re.Rune))
	case syntax.OpAnyChar:
		return text(anyRune)
	case syntax.OpAnyCharNotNL:
		return text(without(anyRune, []runeRange{{'\n', '\n'}}))
	case syntax.OpBeginText:
		return assertBegin
	case syntax.OpEndText:
		return assertEnd
	}
	return patternOperator(re, text)
}

// patternOperator is an operator with operands.
func patternOperator(re *syntax.Regexp, text runeText) fragment {
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

// patternLiteral is a string, in any case of its letters if the expression says so.
func patternLiteral(re *syntax.Regexp, text runeText) fragment {
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
}

// classRanges converts the pairs of the parser.
func classRanges(pairs []rune) []runeRange {
	set := make([]runeRange, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		set = append(set, runeRange{pairs[i], pairs[i+1]})
	}
	return set
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
