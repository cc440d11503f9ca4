package onig

import "strings"

// CompileFancy compiles a pattern in the syntax of fancy-regex 0.19, the engine of tiktoken. It differs from that of
// Oniguruma: a plus after a repetition with braces makes it possessive; ^ and $ match at the ends of the text, or of
// lines with the option m; the option s lets a dot match a newline; options without a colon apply to the rest of the
// pattern; \w includes the joiners U+200C and U+200D; in case-insensitive matching one character never equals two; and
// hexadecimal escapes are code points. Unsupported syntax is an error that names it: two quantifiers in a row, the
// options x, U and R, differences of classes, POSIX classes, \Z, \R, \< and \>.
func CompileFancy(pattern string) (*Regexp, error) { return assemble(pattern, true) }

// fancyAnchor returns the assertion for ^ or $.
func (p *parser) fancyAnchor(r rune) node {
	switch {
	case r == '^' && p.flags.multiLine:
		return assertNode{behindNewline}
	case r == '^':
		return assertNode{textStart}
	case p.flags.multiLine:
		return assertNode{lineEnd}
	}
	return assertNode{textEnd}
}

// fancyBrace is the error for a brace without a number, or after something that cannot be repeated, such as a comment:
// fancy-regex repeats what is before the comment.
const fancyBrace = `a brace that is a character must be written \{`

// fancyRepeated parses the quantifier after n.
func (p *parser) fancyRepeated(n node) node {
	lo, hi, ok := p.quantifier()
	switch {
	case !ok && strings.HasPrefix(p.rest, "{"):
		fail(fancyBrace)
	case !ok:
		return n
	}
	switch n.(type) {
	case assertNode, lookNode:
		fail("an anchor or a lookaround cannot be repeated")
	}
	mode := greedy
	if p.take("?") {
		mode = lazy
	} else if p.take("+") {
		mode = possessive
	}
	if p.rest != "" && strings.IndexByte("*+?{", p.rest[0]) >= 0 {
		fail("two quantifiers in a row are not supported: engines differ on them")
	}
	return repeatNode{n, lo, hi, mode}
}

// fancyEscape parses an escape outside a class that differs from Oniguruma's; nil if it does not differ.
func (p *parser) fancyEscape() node {
	switch r := p.rest[0]; r {
	case 'b', 'B':
		p.next()
		return boundary(fancyWord(), r == 'B')
	case 'Z', 'R', '<', '>':
		fail(`escape "\%c" is not supported`, r)
	}
	return nil
}

// boundary matches between a member of word and another character, or, negated, everywhere else.
func boundary(word *set, negate bool) node {
	look := func(behind, negate bool) node { return lookNode{charNode{word}, behind, negate} }
	return altNode{
		seqNode{look(true, false), look(false, !negate)},
		seqNode{look(true, true), look(false, negate)},
	}
}

// fancyWord is \w: alphabetic characters, marks, digits, connectors and joiners.
func fancyWord() *set {
	joiners := span{0x200C, 0x200D}
	letters := &set{spans: unicodeTables().spans["Alphabetic"]}
	return &set{mask: mask("M") | mask("Nd") | mask("Pc"), spans: []span{joiners}, parts: []*set{letters}}
}

// fancyProperty returns a property; in case-insensitive matching, with the other cases of its members.
func (p *parser) fancyProperty(name string) *set {
	if name == "Word" { // Oniguruma's
		fail(`\p{Word} is not supported: write \w`)
	}
	s := property(name)
	if !p.flags.fold {
		return s
	}
	more := &set{}
	members := (&set{mask: s.mask, spans: s.spans, parts: s.parts}).freeze()
	for _, r := range cased() {
		if members.has(r) {
			more.spans = append(more.spans, folded(r).spans...)
		}
	}
	more.spans = merged(more.spans)
	return &set{parts: []*set{s, more}}
}

// fancyMember rejects syntax with a different meaning at the beginning of a member of a class, or after it.
func (p *parser) fancyMember() {
	for _, mark := range []string{"[:", "--", "~~"} {
		if p.fancy && strings.HasPrefix(p.rest, mark) {
			fail("%q in a class is not supported", mark)
		}
	}
}
