package onig

import (
	"errors"
	"fmt"
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

func parse(pattern string) (node, error) { return (&parser{rest: pattern}).all() }

// all parses a whole pattern.
func (p *parser) all() (node, error) {
	pattern := p.rest
	if len(pattern) > maxPattern {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(pattern), maxPattern)
	}
	if !utf8.ValidString(pattern) {
		return nil, errors.New("it is not UTF-8")
	}
	n, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if p.rest != "" {
		return nil, errors.New("a closing parenthesis has no opening one")
	}
	return n, nil
}

// take consumes text if it comes next.
func (p *parser) take(text string) bool {
	rest, ok := strings.CutPrefix(p.rest, text)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *parser) next() rune {
	r, n := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[n:]
	return r
}

func (p *parser) alternatives() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("groups are nested deeper than %d", maxDepth)
	}
	defer func(f flags) { p.depth--; p.flags = f }(p.flags)
	var alts altNode
	for {
		seq, err := p.sequence()
		if err != nil {
			return nil, err
		}
		alts = append(alts, seq)
		if !p.take("|") {
			break
		}
	}
	if len(alts) == 1 {
		return alts[0], nil
	}
	return alts, nil
}

func (p *parser) sequence() (node, error) {
	var seq seqNode
	letters := "" // of consecutive literals, in case-insensitive matching
	for p.rest != "" && p.rest[0] != '|' && p.rest[0] != ')' {
		before := p.rest
		n, err := p.atom()
		if err != nil {
			return nil, err
		}
		if n == nil {
			continue
		}
		if letters, err = p.checkFold(letters, before, n); err != nil {
			return nil, err
		}
		if n, err = p.repeated(n); err != nil {
			return nil, err
		}
		seq = append(seq, n)
	}
	return seq, nil
}

// foldPairs are the pairs that a single character equals in case-insensitive matching.
var foldPairs = []string{
	"ss", "ff", "fi", "fl", "st", "i\u0307", "\u02bcn", "j\u030c", "h\u0331", "t\u0308", "w\u030a", "y\u030a", "a\u02be",
}

// checkFold rejects consecutive letters that a single character equals in case-insensitive matching, as "ß" does
// "ss".
func (p *parser) checkFold(letters, before string, n node) (string, error) {
	_, isChar := n.(charNode)
	text := before[:len(before)-len(p.rest)]
	if p.fancy || !p.flags.fold || !isChar || utf8.RuneCountInString(text) != 1 {
		return "", nil
	}
	letters = strings.ToLower(letters + text)
	for _, pair := range foldPairs {
		if strings.HasSuffix(letters, pair) {
			return "", fmt.Errorf("%q is not supported in case-insensitive matching: a single character matches it", pair)
		}
	}
	return letters, nil
}

// atom parses one operand of a quantifier; nil for syntax that only changes the flags.
func (p *parser) atom() (node, error) {
	switch r := p.next(); {
	case r == '(':
		return p.group()
	case r == '[':
		s, err := p.class()
		if err != nil {
			return nil, err
		}
		return charNode{s}, nil
	case r == '.':
		if p.flags.dotAll {
			return charNode{&set{mask: ^uint32(0)}}, nil
		}
		return charNode{&set{spans: []span{{'\n', '\n'}}, negate: true}}, nil
	case p.fancy && (r == '^' || r == '$'):
		return p.fancyAnchor(r), nil
	case r == '^':
		return assertNode{lineStart}, nil
	case r == '$':
		return assertNode{lineEnd}, nil
	case r == '\\':
		return p.escape()
	case p.fancy && r == '{':
		return nil, errFancyBrace
	case r == '*' || r == '+' || r == '?':
		return nil, fmt.Errorf("nothing is before %q", r)
	case p.flags.extended && unicode.IsSpace(r):
		return nil, nil
	case p.flags.extended && r == '#':
		_, p.rest, _ = strings.Cut(p.rest, "\n")
		return nil, nil
	default:
		return p.literal(r), nil
	}
}

func (p *parser) literal(r rune) node {
	if p.flags.fold {
		return charNode{folded(r)}
	}
	return charNode{&set{spans: []span{{r, r}}}}
}

// group parses what follows an opening parenthesis.
func (p *parser) group() (node, error) {
	wrap := func(n node) node { return n }
	saved := p.flags
	switch {
	case p.take("?#"):
		_, after, closed := strings.Cut(p.rest, ")")
		if !closed {
			return nil, errors.New("a comment has no end")
		}
		p.rest = after
		return nil, nil
	case p.fancy && p.take("?P<"):
		return p.named()
	case p.take("?:"):
	case p.take("?="):
		wrap = func(n node) node { return lookNode{what: n} }
	case p.take("?!"):
		wrap = func(n node) node { return lookNode{what: n, negate: true} }
	case p.take("?<="):
		wrap = func(n node) node { return lookNode{what: n, behind: true} }
	case p.take("?<!"):
		wrap = func(n node) node { return lookNode{what: n, behind: true, negate: true} }
	case p.take("?>"):
		wrap = func(n node) node { return atomicNode{n} }
	case p.take("?<"):
		return p.named()
	case p.take("?"):
		inline, err := p.options()
		if err != nil {
			return nil, err
		}
		if inline && p.fancy {
			return nil, p.fancyInline()
		}
		if inline { // the flags apply up to the end of the enclosing group, alternatives included
			return p.alternatives()
		}
	}
	n, err := p.inside()
	p.flags = saved
	if err != nil {
		return nil, err
	}
	return wrap(n), nil
}

// named parses the rest of a named group. The name is ignored.
func (p *parser) named() (node, error) {
	_, after, closed := strings.Cut(p.rest, ">")
	if !closed {
		return nil, errors.New("the name of a group has no end")
	}
	p.rest = after
	return p.inside()
}

// inside parses the content of a group, and its end.
func (p *parser) inside() (node, error) {
	n, err := p.alternatives()
	if err == nil && !p.take(")") {
		err = errors.New("a group has no end")
	}
	return n, err
}

// options parses the letters of (?i) or (?i:...). inline reports that it is the former.
func (p *parser) options() (inline bool, err error) {
	on := true
	for {
		r := p.next()
		if p.fancy && r != '-' && r != ')' && r != ':' {
			if err := p.fancyOption(r, on); err != nil {
				return false, err
			}
			continue
		}
		switch r {
		case '-':
			on = false
		case 'i':
			p.flags.fold = on
		case 'm':
			p.flags.dotAll = on
		case 'x':
			p.flags.extended = on
		case ')':
			return true, nil
		case ':':
			return false, nil
		default:
			return false, fmt.Errorf("group option %q is not supported", r)
		}
	}
}

// repeated parses the quantifiers after n.
func (p *parser) repeated(n node) (node, error) {
	if p.fancy {
		return p.fancyRepeated(n)
	}
	for p.rest != "" {
		interval := p.rest[0] == '{'
		lo, hi, ok, err := p.quantifier()
		if err != nil || !ok {
			return n, err
		}
		mode := greedy
		switch {
		case interval && lo == hi && strings.HasPrefix(p.rest, "?"):
			return nil, errors.New("{n}? is not supported: engines differ on it")
		case p.take("?"):
			mode = lazy
		case !interval && p.take("+"): // after an interval, a plus is another quantifier
			mode = possessive
		}
		if _, ok := n.(assertNode); ok {
			return nil, errors.New("an anchor cannot be repeated")
		}
		n = repeatNode{n, lo, hi, mode}
	}
	return n, nil
}

// quantifier parses a quantifier. ok is false if there is none, or a brace that is a literal.
func (p *parser) quantifier() (lo, hi int, ok bool, err error) {
	switch {
	case p.take("*"):
		return 0, -1, true, nil
	case p.take("+"):
		return 1, -1, true, nil
	case p.take("?"):
		return 0, 1, true, nil
	case strings.HasPrefix(p.rest, "{"):
		return p.interval()
	}
	return 0, 0, false, nil
}

// interval parses {n}, {n,}, {,m} or {n,m}.
func (p *parser) interval() (lo, hi int, ok bool, err error) {
	body, after, closed := strings.Cut(p.rest[1:], "}")
	first, second, ranged := strings.Cut(body, ",")
	if !closed || !digits(first) || !digits(second) || first+second == "" {
		return 0, 0, false, nil
	}
	lo, hi = number(first), number(second)
	switch {
	case !ranged:
		hi = lo
	case second == "":
		hi = -1
	}
	if lo > maxRepeat || hi > maxRepeat {
		return 0, 0, false, fmt.Errorf("more than %d repetitions are not supported", maxRepeat)
	}
	if hi >= 0 && hi < lo {
		return 0, 0, false, fmt.Errorf("repetition {%s} has its numbers in the wrong order", body)
	}
	p.rest = after
	return lo, hi, true, nil
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil && s != "" {
		return math.MaxInt32
	}
	return n
}
