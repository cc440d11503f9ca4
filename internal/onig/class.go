package onig

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape parses what follows a backslash outside a class.
func (p *parser) escape() node {
	if p.rest == "" {
		fail("it ends in a backslash")
	}
	if p.fancy {
		if n := p.fancyEscape(); n != nil {
			return n
		}
	}
	switch p.rest[0] {
	case 'A', 'z', 'Z', 'b', 'B':
		kind := map[rune]assertion{
			'A': textStart, 'z': textEnd, 'Z': textEndOrNewline, 'b': wordBoundary, 'B': notWordBoundary,
		}
		return assertNode{kind[p.next()]}
	case 'R':
		p.next()
		breaks := &set{spans: []span{{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}}}
		pair := seqNode{exactly('\r'), exactly('\n')}
		return atomicNode{altNode{pair, charNode{breaks}}}
	}
	s, r := p.escaped()
	if s == nil {
		return p.literal(r)
	}
	return charNode{s}
}

func exactly(r rune) node { return charNode{&set{spans: []span{{r, r}}}} }

// escaped parses the escapes that mean the same inside and outside a class: a set or one character.
func (p *parser) escaped() (*set, rune) {
	if p.rest == "" {
		fail("it ends in a backslash")
	}
	r := p.next()
	if control := strings.IndexRune("tnrfvae", r); control >= 0 {
		return nil, rune("\t\n\r\f\v\a\x1b"[control])
	}
	var s *set
	switch r {
	case 'd', 'D':
		s = &set{mask: mask("Nd")}
	case 's', 'S':
		s = spaces()
	case 'h', 'H':
		s = hexDigits()
	case 'w', 'W':
		if p.fancy {
			s = &set{parts: []*set{fancyWord()}}
		} else {
			s = &set{parts: []*set{property("Word")}}
		}
	case 'p', 'P':
		return p.namedProperty(r == 'P'), 0
	case 'x', 'u':
		return nil, p.codePoint(r)
	default:
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			fail(`escape "\%c" is not supported`, r)
		}
		return nil, r
	}
	s.negate = unicode.IsUpper(r)
	return s, 0
}

// namedProperty parses {Name} or {^Name}.
func (p *parser) namedProperty(negate bool) *set {
	name, after, closed := strings.Cut(strings.TrimPrefix(p.rest, "{"), "}")
	if p.fancy && p.rest != "" && p.rest[0] != '{' { // one letter
		name, after = p.rest[:1], p.rest[1:]
	} else if !p.take("{") || !closed {
		fail(`\p has no name in braces`)
	}
	p.rest = after
	if bare, ok := strings.CutPrefix(name, "^"); ok {
		name, negate = bare, !negate
	}
	if p.flags.fold && (name == "Lu" || name == "Ll" || name == "Lt") {
		fail(`\p{%s} is not supported in case-insensitive matching`, name)
	}
	var s *set
	if p.fancy {
		s = p.fancyProperty(name)
	} else {
		s = property(name)
	}
	return &set{parts: s.parts, mask: s.mask, spans: s.spans, negate: negate}
}

// codePoint parses the digits of \xHH, \x{H...} and \uHHHH.
func (p *parser) codePoint(kind rune) rune {
	var hex string
	if kind == 'x' && p.take("{") {
		hex = p.until("}", `\x{ has no end`)
	} else {
		n := min(len(p.rest), map[rune]int{'x': 2, 'u': 4}[kind])
		hex, p.rest = p.rest[:n], p.rest[n:]
	}
	code, err := strconv.ParseUint(hex, 16, 32)
	if err != nil || !utf8.ValidRune(rune(code)) || !p.fancy && kind == 'x' && len(hex) <= 2 && code >= utf8.RuneSelf {
		fail(`\%c%s is not a character`, kind, hex)
	}
	return rune(code)
}

// class parses what follows an opening bracket.
func (p *parser) class() *set {
	if p.depth++; p.depth > maxDepth {
		fail("classes are nested deeper than %d", maxDepth)
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
			fail("a class has no end")
		case p.take("]"):
			whole.and = append(whole.and, p.fold(part))
			if len(whole.and) > 1 {
				whole.mask = ^uint32(0)
				return whole
			}
			union := whole.and[0] // a class without && is a single union, with one level of nesting less
			if len(union.parts) == 1 && union.mask == 0 && len(union.spans) == 0 && !whole.negate {
				return union.parts[0]
			}
			return &set{mask: union.mask, spans: union.spans, parts: union.parts, negate: whole.negate}
		case p.take("&&"):
			whole.and = append(whole.and, p.fold(part))
			part = &set{}
		default:
			p.member(part)
		}
	}
}

// member parses the next member of a class, and adds it to part.
func (p *parser) member(part *set) {
	p.fancyMember()
	if p.take("[:") { // the name of a class, such as [:alpha:]
		name, negate := strings.CutPrefix(p.until(":]", "[: has no end"), "^")
		s := bracketed(name)
		part.parts = append(part.parts, &set{mask: s.mask, spans: s.spans, parts: s.parts, negate: negate})
		return
	}
	if p.take("[") {
		part.parts = append(part.parts, p.class())
		return
	}
	s, lo := p.classChar()
	ranged := strings.HasPrefix(p.rest, "-") && !strings.HasPrefix(p.rest, "-]")
	if s != nil {
		part.add(s)
		if p.fancy && ranged {
			fail("a range begins with a set of characters")
		}
		return
	}
	p.fancyMember()
	hi := lo
	if ranged {
		p.next()
		if s, hi = p.classChar(); s != nil || hi < lo {
			fail("a range from %q has no end above it", lo)
		}
	}
	part.spans = append(part.spans, span{lo, hi})
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

func (p *parser) classChar() (*set, rune) {
	if p.rest == "" {
		fail("a class has no end")
	}
	if r := p.next(); r != '\\' {
		return nil, r
	}
	if p.take("b") {
		return nil, '\b'
	}
	return p.escaped()
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
