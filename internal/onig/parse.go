package onig

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// node is a node of the syntax tree of a pattern.
type node interface{}

type (
	charNode   struct{ set *set }
	seqNode    []node
	altNode    []node
	repeatNode struct {
		what     node
		min, max int // max < 0: unbounded
		mode     repeatMode
	}
	lookNode struct {
		what           node
		behind, negate bool
	}
	atomicNode struct{ what node }
	assertNode struct{ kind assertion }
)

type repeatMode uint8

const (
	greedy repeatMode = iota
	lazy
	possessive
)

type assertion uint8

const (
	lineStart assertion = iota
	lineEnd
	textStart
	textEnd
	textEndOrNewline
	wordBoundary
	notWordBoundary
	behindNewline // or at the beginning of the text
)

// Bounds of a pattern, so that a broken file cannot exhaust memory.
const (
	maxPattern = 1 << 16
	maxDepth   = 100
	maxRepeat  = 1000
)

// parser parses a pattern.
type parser struct {
	rest  string
	depth int
	flags flags
	fancy bool // the syntax is that of fancy-regex
}

type flags struct{ fold, dotAll, extended, multiLine bool }

// all parses a whole pattern.
func (p *parser) all() node {
	if len(p.rest) > maxPattern {
		fail("it has %d bytes, more than %d", len(p.rest), maxPattern)
	}
	if !utf8.ValidString(p.rest) {
		fail("it is not UTF-8")
	}
	n := p.alternatives()
	if p.rest != "" {
		fail("a closing parenthesis has no opening one")
	}
	return n
}

// take consumes text if it comes next.
func (p *parser) take(text string) (ok bool) {
	p.rest, ok = strings.CutPrefix(p.rest, text)
	return ok
}

// until consumes the text up to end, and end; message is the error if there is none.
func (p *parser) until(end, message string) string {
	text, after, closed := strings.Cut(p.rest, end)
	if !closed {
		fail("%s", message)
	}
	p.rest = after
	return text
}

func (p *parser) next() rune {
	r, n := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[n:]
	return r
}

func (p *parser) alternatives() node {
	if p.depth++; p.depth > maxDepth {
		fail("groups are nested deeper than %d", maxDepth)
	}
	defer func(f flags) { p.depth--; p.flags = f }(p.flags)
	alts := altNode{p.sequence()}
	for p.take("|") {
		alts = append(alts, p.sequence())
	}
	if len(alts) == 1 {
		return alts[0]
	}
	return alts
}

func (p *parser) sequence() node {
	var seq seqNode
	letters := "" // of consecutive literals, in case-insensitive matching
	for p.rest != "" && p.rest[0] != '|' && p.rest[0] != ')' {
		before := p.rest
		if n := p.atom(); n != nil {
			letters = p.checkFold(letters, before, n)
			seq = append(seq, p.repeated(n))
		}
	}
	return seq
}

// foldPairs are the pairs that a single character equals in case-insensitive matching.
var foldPairs = []string{
	"ss", "ff", "fi", "fl", "st", "i\u0307", "\u02bcn", "j\u030c", "h\u0331", "t\u0308", "w\u030a", "y\u030a", "a\u02be",
}

// checkFold rejects consecutive letters that a single character equals in case-insensitive matching, as "ß" does
// "ss".
func (p *parser) checkFold(letters, before string, n node) string {
	_, isChar := n.(charNode)
	text := before[:len(before)-len(p.rest)]
	if p.fancy || !p.flags.fold || !isChar || utf8.RuneCountInString(text) != 1 {
		return ""
	}
	letters = strings.ToLower(letters + text)
	for _, pair := range foldPairs {
		if strings.HasSuffix(letters, pair) {
			fail("%q is not supported in case-insensitive matching: a single character matches it", pair)
		}
	}
	return letters
}

// atom parses one operand of a quantifier; nil for syntax that only changes the flags.
func (p *parser) atom() node {
	switch r := p.next(); {
	case r == '(':
		return p.group()
	case r == '[':
		return charNode{p.class()}
	case r == '.' && p.flags.dotAll:
		return charNode{&set{mask: ^uint32(0)}}
	case r == '.':
		return charNode{&set{spans: []span{{'\n', '\n'}}, negate: true}}
	case p.fancy && (r == '^' || r == '$'):
		return p.fancyAnchor(r)
	case r == '^':
		return assertNode{lineStart}
	case r == '$':
		return assertNode{lineEnd}
	case r == '\\':
		return p.escape()
	case p.fancy && r == '{':
		fail(fancyBrace)
	case r == '*' || r == '+' || r == '?':
		fail("nothing is before %q", r)
	case p.flags.extended && unicode.IsSpace(r):
		return nil
	case p.flags.extended && r == '#':
		_, p.rest, _ = strings.Cut(p.rest, "\n")
		return nil
	default:
		return p.literal(r)
	}
	return nil
}

func (p *parser) literal(r rune) node {
	if p.flags.fold {
		return charNode{folded(r)}
	}
	return exactly(r)
}

// group parses what follows an opening parenthesis.
func (p *parser) group() node {
	wrap := func(n node) node { return n }
	saved := p.flags
	switch {
	case p.take("?#"):
		p.until(")", "a comment has no end")
		return nil
	case p.take("?<="):
		wrap = func(n node) node { return lookNode{what: n, behind: true} }
	case p.take("?<!"):
		wrap = func(n node) node { return lookNode{what: n, behind: true, negate: true} }
	case p.fancy && p.take("?P<"), p.take("?<"):
		p.until(">", "the name of a group has no end") // the name is ignored
	case p.take("?:"):
	case p.take("?="):
		wrap = func(n node) node { return lookNode{what: n} }
	case p.take("?!"):
		wrap = func(n node) node { return lookNode{what: n, negate: true} }
	case p.take("?>"):
		wrap = func(n node) node { return atomicNode{n} }
	case p.take("?"):
		inline := p.options()
		if inline && p.fancy {
			if p.depth > 1 { // in a group they would apply after its end, too
				fail("options without a colon are not supported inside a group: write (?i:...)")
			}
			return nil
		}
		if inline { // the flags apply up to the end of the enclosing group, alternatives included
			return p.alternatives()
		}
	}
	n := p.alternatives()
	if !p.take(")") {
		fail("a group has no end")
	}
	p.flags = saved
	return wrap(n)
}

// options parses the letters of (?i) or (?i:...). inline reports that it is the former.
func (p *parser) options() (inline bool) {
	for on := true; ; {
		switch r := p.next(); {
		case r == ')':
			return true
		case r == ':':
			return false
		case r == '-':
			on = false
		case r == 'i':
			p.flags.fold = on
		case r == 'm' && p.fancy:
			p.flags.multiLine = on
		case r == 'm', r == 's' && p.fancy:
			p.flags.dotAll = on
		case r == 'x' && !p.fancy:
			p.flags.extended = on
		default:
			fail("group option %q is not supported", r)
		}
	}
}

// repeated parses the quantifiers after n.
func (p *parser) repeated(n node) node {
	if p.fancy {
		return p.fancyRepeated(n)
	}
	for p.rest != "" {
		interval := p.rest[0] == '{'
		lo, hi, ok := p.quantifier()
		if !ok {
			return n
		}
		mode := greedy
		switch {
		case interval && lo == hi && strings.HasPrefix(p.rest, "?"):
			fail("{n}? is not supported: engines differ on it")
		case p.take("?"):
			mode = lazy
		case !interval && p.take("+"): // after an interval, a plus is another quantifier
			mode = possessive
		}
		if _, ok := n.(assertNode); ok {
			fail("an anchor cannot be repeated")
		}
		n = repeatNode{n, lo, hi, mode}
	}
	return n
}

// quantifier parses a quantifier. ok is false if there is none, or a brace that is a literal.
func (p *parser) quantifier() (lo, hi int, ok bool) {
	switch {
	case p.take("*"):
		return 0, -1, true
	case p.take("+"):
		return 1, -1, true
	case p.take("?"):
		return 0, 1, true
	case strings.HasPrefix(p.rest, "{"):
		return p.interval()
	}
	return 0, 0, false
}

// interval parses {n}, {n,}, {,m} or {n,m}.
func (p *parser) interval() (lo, hi int, ok bool) {
	body, after, closed := strings.Cut(p.rest[1:], "}")
	first, second, ranged := strings.Cut(body, ",")
	if !closed || !digits(first) || !digits(second) || first+second == "" {
		return 0, 0, false
	}
	lo, hi = number(first), number(second)
	switch {
	case !ranged:
		hi = lo
	case second == "":
		hi = -1
	}
	if lo > maxRepeat || hi > maxRepeat {
		fail("more than %d repetitions are not supported", maxRepeat)
	}
	if hi >= 0 && hi < lo {
		fail("repetition {%s} has its numbers in the wrong order", body)
	}
	p.rest = after
	return lo, hi, true
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil && s != "" {
		return math.MaxInt32
	}
	return n
}
