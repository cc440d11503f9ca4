package onig

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape parses what follows a backslash outside a class.
func (p *parser) escape() (node, error) {
	if p.rest == "" {
		return nil, errors.New("it ends in a backslash")
	}
	if p.fancy {
		if n, err := p.fancyEscape(); n != nil || err != nil {
			return n, err
		}
	}
	switch p.rest[0] {
	case 'A', 'z', 'Z', 'b', 'B':
		kind := map[rune]assertion{
			'A': textStart, 'z': textEnd, 'Z': textEndOrNewline, 'b': wordBoundary, 'B': notWordBoundary,
		}
		return assertNode{kind[p.next()]}, nil
	case 'R':
		p.next()
		breaks := &set{spans: []span{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}}
		pair := seqNode{p.exactly('\r'), p.exactly('\n')}
		return atomicNode{altNode{pair, charNode{breaks}}}, nil
	}
	s, r, err := p.escaped()
	if err != nil {
		return nil, err
	}
	if s != nil {
		return charNode{s}, nil
	}
	return p.literal(r), nil
}

func (p *parser) exactly(r rune) node { return charNode{&set{spans: []span{{r, r}}}} }

// escaped parses the escapes that mean the same inside and outside a class: a set or one character.
func (p *parser) escaped() (*set, rune, error) {
	if p.rest == "" {
		return nil, 0, errors.New("it ends in a backslash")
	}
	switch r := p.next(); r {
	case 't':
		return nil, '\t', nil
	case 'n':
		return nil, '\n', nil
	case 'r':
		return nil, '\r', nil
	case 'f':
		return nil, '\f', nil
	case 'v':
		return nil, '\v', nil
	case 'a':
		return nil, '\a', nil
	case 'e':
		return nil, 0x1b, nil
	case 'd', 'D':
		return &set{mask: mask("Nd"), negate: r == 'D'}, 0, nil
	case 's', 'S':
		s := spaces()
		s.negate = r == 'S'
		return s, 0, nil
	case 'h', 'H':
		s := hexDigits()
		s.negate = r == 'H'
		return s, 0, nil
	case 'w', 'W':
		s, err := property("Word")
		if p.fancy {
			s, err = fancyWord(), nil
		}
		return &set{parts: []*set{s}, negate: r == 'W'}, 0, err
	case 'p', 'P':
		s, err := p.namedProperty(r == 'P')
		return s, 0, err
	case 'x', 'u':
		code, err := p.codePoint(r)
		return nil, code, err
	default:
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return nil, 0, fmt.Errorf(`escape "\%c" is not supported`, r)
		}
		return nil, r, nil
	}
}

// namedProperty parses {Name} or {^Name}.
func (p *parser) namedProperty(negate bool) (*set, error) {
	name, after, closed := strings.Cut(strings.TrimPrefix(p.rest, "{"), "}")
	if p.fancy && p.rest != "" && p.rest[0] != '{' { // one letter
		name, after = p.rest[:1], p.rest[1:]
	} else if !p.take("{") || !closed {
		return nil, errors.New(`\p has no name in braces`)
	}
	p.rest = after
	if bare, ok := strings.CutPrefix(name, "^"); ok {
		name, negate = bare, !negate
	}
	if p.flags.fold && (name == "Lu" || name == "Ll" || name == "Lt") {
		return nil, fmt.Errorf(`\p{%s} is not supported in case-insensitive matching`, name)
	}
	s, err := property(name)
	if p.fancy {
		s, err = p.fancyProperty(name)
	}
	if err != nil {
		return nil, err
	}
	return &set{parts: s.parts, mask: s.mask, spans: s.spans, negate: negate}, nil
}

// codePoint parses the digits of \xHH, \x{H...} and \uHHHH.
func (p *parser) codePoint(kind rune) (rune, error) {
	var hex string
	switch {
	case kind == 'x' && p.take("{"):
		var closed bool
		if hex, p.rest, closed = strings.Cut(p.rest, "}"); !closed {
			return 0, errors.New(`\x{ has no end`)
		}
	default:
		n := min(len(p.rest), map[rune]int{'x': 2, 'u': 4}[kind])
		hex, p.rest = p.rest[:n], p.rest[n:]
	}
	code, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || !utf8.ValidRune(rune(code)) || !p.fancy && kind == 'x' && len(hex) <= 2 && code >= utf8.RuneSelf {
		return 0, fmt.Errorf(`\%c%s is not a character`, kind, hex)
	}
	return rune(code), nil
}

// class parses what follows an opening bracket.
func (p *parser) class() (*set, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fmt.Errorf("classes are nested deeper than %d", maxDepth)
	}
	defer func() { p.depth-- }()
	whole := &set{negate: p.take("^")}
	part := &set{} // up to the next &&
	if p.take("]") {
		part.spans = append(part.spans, span{']', ']'})
	}
	for {
		switch {
		case p.rest == "":
			return nil, errors.New("a class has no end")
		case p.take("]"):
			whole.and = append(whole.and, p.fold(part))
			return whole.flat(), nil
		case p.take("&&"):
			whole.and = append(whole.and, p.fold(part))
			part = &set{}
		default:
			if err := p.member(part); err != nil {
				return nil, err
			}
		}
	}
}

// flat removes one level of nesting: a class without && is a single union.
func (s *set) flat() *set {
	if len(s.and) > 1 {
		s.mask = ^uint32(0)
		return s
	}
	union := s.and[0]
	if len(union.parts) == 1 && union.mask == 0 && len(union.spans) == 0 && !s.negate {
		return union.parts[0]
	}
	return &set{mask: union.mask, spans: union.spans, parts: union.parts, negate: s.negate}
}

// member parses the next member of a class, and adds it to part.
func (p *parser) member(part *set) error {
	if err := p.fancyMember(); err != nil {
		return err
	}
	if p.take("[:") {
		return p.posix(part)
	}
	if p.take("[") {
		inner, err := p.class()
		if err != nil {
			return err
		}
		part.parts = append(part.parts, inner)
		return nil
	}
	s, lo, err := p.classChar()
	if err != nil {
		return err
	}
	if s != nil {
		part.add(s)
		return p.fancyAfterSet()
	}
	if err := p.fancyMember(); err != nil {
		return err
	}
	hi := lo
	if strings.HasPrefix(p.rest, "-") && !strings.HasPrefix(p.rest, "-]") {
		p.next()
		if s, hi, err = p.classChar(); err != nil {
			return err
		}
		if s != nil || hi < lo {
			return fmt.Errorf("a range from %q has no end above it", lo)
		}
	}
	part.spans = append(part.spans, span{lo, hi})
	return nil
}

// add adds a set to a union.
func (s *set) add(o *set) {
	if o.negate || len(o.and) > 0 || len(o.spans) > 8 {
		s.parts = append(s.parts, o)
		return
	}
	s.mask |= o.mask
	s.spans = append(s.spans, o.spans...)
	s.parts = append(s.parts, o.parts...)
}

func (p *parser) classChar() (*set, rune, error) {
	if p.rest == "" {
		return nil, 0, errors.New("a class has no end")
	}
	if r := p.next(); r != '\\' {
		return nil, r, nil
	}
	if p.take("b") {
		return nil, '\b', nil
	}
	return p.escaped()
}

// posix parses the name of a class such as [:alpha:].
func (p *parser) posix(part *set) error {
	name, after, closed := strings.Cut(p.rest, ":]")
	if !closed {
		return errors.New("[: has no end")
	}
	p.rest = after
	bare, negate := strings.CutPrefix(name, "^")
	s, err := bracketed(bare)
	if err != nil {
		return err
	}
	part.parts = append(part.parts, &set{mask: s.mask, spans: s.spans, parts: s.parts, negate: negate})
	return nil
}

// fold adds the other cases of the characters of a union if matching ignores case, and sorts long lists of spans.
func (p *parser) fold(part *set) *set {
	if p.flags.fold {
		for _, s := range part.spans {
			first, _ := slices.BinarySearch(cased(), s.lo)
			for _, r := range cased()[first:] {
				if r > s.hi {
					break
				}
				part.spans = append(part.spans, folded(r).spans[1:]...)
			}
		}
	}
	if len(part.spans) > 8 {
		part.spans = merged(part.spans)
	}
	return part
}
