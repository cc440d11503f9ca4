package jinja

import (
	"slices"
	"strings"
)

// parser parses tokens into statements. Each method parses one construct, and leaves the parser after it.
type parser struct {
	tokens   []token
	pos      int
	depth    int
	literals []string
	slices   bool
	ends     [][]string // the tags that may end the statements being parsed
}

// maxNesting bounds the nesting of constructs, and the length of chains such as a + b + c, which nest too.
const maxNesting = 400

func parse(text string) *source {
	p := &parser{tokens: tokenize(text)}
	body := p.statements()
	return &source{body, p.literals, p.slices}
}

func (p *parser) cur() *token { return &p.tokens[p.pos] }

func (p *parser) look() *token { return &p.tokens[min(p.pos+1, len(p.tokens)-1)] }

func (p *parser) next() *token {
	t := p.cur()
	if t.kind != tokEOF {
		p.pos++
	}
	return t
}

func (p *parser) fail(format string, args ...any) { p.failAt(p.cur().line, format, args...) }

func (p *parser) failAt(line int, format string, args ...any) {
	raiseAt(line, syntaxError, format, args...)
}

// nest counts a nested construct; the result must be called at its end.
func (p *parser) nest() func() {
	p.depth++
	if p.depth > maxNesting {
		p.fail("the template nests more than %d levels", maxNesting)
	}
	return func() { p.depth-- }
}

// chain counts the operators of a chain.
func (p *parser) chain(n int) {
	if n > maxNesting {
		p.fail("an expression has more than %d operators in a row", maxNesting)
	}
}

func (t *token) isName(name string) bool { return t.kind == tokName && t.text == name }

// symbol is the text of a name, and the kind of another token.
func (t *token) symbol() string {
	if t.kind == tokName {
		return t.text
	}
	return string(t.kind)
}

// is reports whether a token is of a kind or is a name.
func (t *token) is(what kind) bool { return t.kind == what || t.isName(string(what)) }

// skip consumes a token if it comes next.
func (p *parser) skip(what kind) bool {
	if !p.cur().is(what) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(what kind) *token {
	if t := p.cur(); !t.is(what) {
		p.fail("expected token '%s', got '%s'", what, t.symbol())
	}
	return p.next()
}

// separated parses items that are separated by commas, up to a token, which may follow a comma if trailing is set.
func (p *parser) separated(end kind, trailing bool, read func()) {
	for n := 0; p.cur().kind != end; n++ {
		if n > 0 {
			p.expect(",")
		}
		if n > 0 && trailing && p.cur().kind == end {
			return
		}
		read()
	}
}

// statements parses up to a tag that begins with one of the ends, which then is the current token, or, without ends, up
// to the end of the template.
func (p *parser) statements(ends ...string) []node {
	defer p.nest()()
	if len(ends) > 0 {
		p.ends = append(p.ends, ends)
		defer func() { p.ends = p.ends[:len(p.ends)-1] }()
	}
	var body []node
	out := &outputNode{}
	flush := func() {
		if len(out.items) > 0 {
			body = append(body, out)
			out = &outputNode{}
		}
	}
	for {
		switch t := p.next(); t.kind {
		case tokEOF:
			flush()
			if len(ends) > 0 {
				p.failTag("")
			}
			return body
		case tokData:
			p.literals = append(p.literals, t.text)
			out.items, out.lines = append(out.items, &dataNode{t.text}), append(out.lines, t.line)
		case tokPrint:
			out.items, out.lines = append(out.items, p.tuple(true)), append(out.lines, t.line)
			p.expect(tokPrintEnd)
		default:
			flush()
			if t := p.cur(); t.kind == tokName && slices.Contains(ends, t.text) {
				return body
			}
			body = append(body, p.statement())
			p.expect(tokBlockEnd)
		}
	}
}

// failTag raises the error for an unexpected tag or the end of the template.
func (p *parser) failTag(name string) {
	text := "Unexpected end of template."
	if name != "" {
		text = "Encountered unknown tag '" + name + "'."
	}
	if n := len(p.ends); n > 0 {
		text += " Jinja was looking for the following tags: '" + strings.Join(p.ends[n-1], "' or '") + "'."
	}
	p.fail("%s", text)
}

// block parses the end of a tag, and statements up to one of the ends.
func (p *parser) block(ends ...string) []node {
	p.skip(":")
	p.expect(tokBlockEnd)
	return p.statements(ends...)
}

// whole is block with a single end, which it consumes.
func (p *parser) whole(end string) []node {
	body := p.block(end)
	p.next()
	return body
}

// statement parses a tag and its body.
func (p *parser) statement() node {
	t := p.cur()
	if t.kind != tokName {
		p.fail("tag name expected")
	}
	read, ok := statementParsers[t.text]
	if !ok {
		p.failTag(t.text)
	}
	p.next()
	return read(p, t.line)
}

var statementParsers map[string]func(p *parser, line int) node

func init() {
	statementParsers = map[string]func(p *parser, line int) node{
		"for": (*parser).forLoop, "if": (*parser).ifStatement, "set": (*parser).set, "with": (*parser).with,
		"macro": (*parser).macro, "call": (*parser).callBlock, "filter": (*parser).filterBlock,
		"print": (*parser).print, "block": (*parser).namedBlock, "autoescape": (*parser).autoescape,
		"include": (*parser).include, "import": (*parser).importAll, "from": (*parser).importFrom,
		"break":    func(_ *parser, line int) node { return &jumpNode{breakLoop, line} },
		"continue": func(_ *parser, line int) node { return &jumpNode{continueLoop, line} },
		"extends":  func(p *parser, line int) node { return p.unavailable("extends", line) },
		"generation": func(p *parser, line int) node {
			return &callBlockNode{macro: &macroNode{line: line, body: p.whole("endgeneration")}, line: line}
		},
	}
}

func (p *parser) set(line int) node {
	target := p.assignTarget("", true)
	if p.skip("=") {
		return &setNode{target, p.tuple(true), line}
	}
	filter, _ := p.filters(nil).(*filterNode)
	return &setBlockNode{target, filter, p.whole("endset"), line}
}

func (p *parser) forLoop(line int) node {
	n := &forNode{line: line}
	n.target = p.assignTarget("in", false)
	p.expect("in")
	n.iter = p.tupleUntil(false, "recursive")
	if p.skip("if") {
		n.test = p.expression()
	}
	n.recursive = p.skip("recursive")
	n.body = p.block("endfor", "else")
	if p.next().text == "else" {
		n.orElse = p.whole("endfor")
	}
	return n
}

func (p *parser) ifStatement(line int) node {
	first := &ifNode{line: line}
	n := first
	for {
		n.test = p.tuple(false)
		n.body = p.block("elif", "else", "endif")
		switch t := p.next(); t.text {
		case "elif":
			n = &ifNode{line: t.line}
			first.elifs = append(first.elifs, n)
			continue
		case "else":
			first.orElse = p.whole("endif")
		}
		return first
	}
}

func (p *parser) with(int) node {
	n := &withNode{}
	p.separated(tokBlockEnd, false, func() {
		target := p.assignTarget("", false)
		setMode(target, param)
		n.targets = append(n.targets, target)
		p.expect("=")
		n.values = append(n.values, p.expression())
	})
	n.body = p.whole("endwith")
	return n
}

func (p *parser) autoescape(line int) node {
	if c, ok := p.expression().(*constNode); !ok || truth(c.value) {
		p.failAt(line, "autoescape is not supported: the output is not HTML")
	}
	return &scopeNode{p.whole("endautoescape")}
}

func (p *parser) namedBlock(line int) node {
	n := &blockNode{name: p.expect(tokName).text, line: line}
	n.scoped = p.skip("scoped")
	n.required = p.skip("required")
	if p.cur().kind == "-" {
		p.fail("Block names in Jinja have to be valid Python identifiers and may not contain hyphens, " +
			"use an underscore instead.")
	}
	n.body = p.whole("endblock")
	if n.required && !blank(n.body) {
		p.fail("Required blocks can only contain comments or whitespace")
	}
	if p.cur().isName(n.name) {
		p.next()
	}
	return n
}

// blank reports whether statements are only white space.
func blank(body []node) bool {
	for _, n := range body {
		out, ok := n.(*outputNode)
		if !ok {
			return false
		}
		for _, item := range out.items {
			if d, ok := item.(*dataNode); !ok || strings.TrimFunc(d.text, isSpace) != "" {
				return false
			}
		}
	}
	return true
}

func (p *parser) macro(line int) node {
	n := &macroNode{name: p.nameTarget().name, line: line}
	p.signature(n)
	n.body = p.whole("endmacro")
	return n
}

// signature parses the parameters of a macro.
func (p *parser) signature(n *macroNode) {
	p.expect("(")
	p.separated(")", false, func() {
		arg := p.nameTarget()
		arg.mode = param
		if p.skip("=") {
			n.defaults = append(n.defaults, p.expression())
		} else if len(n.defaults) > 0 {
			p.fail("non-default argument follows default argument")
		}
		if slices.ContainsFunc(n.args, func(a *nameNode) bool { return a.name == arg.name }) {
			p.fail("duplicate argument '%s' in function definition", arg.name)
		}
		n.args = append(n.args, arg)
	})
	p.expect(")")
}

func (p *parser) callBlock(line int) node {
	n := &callBlockNode{macro: &macroNode{line: line}, line: line}
	if p.cur().kind == "(" {
		p.signature(n.macro)
	}
	call, ok := p.expression().(*callNode)
	if !ok {
		p.failAt(line, "expected call")
	}
	n.call = call
	n.macro.body = p.whole("endcall")
	return n
}

func (p *parser) filterBlock(line int) node {
	filter, _ := p.filters(p.filter(nil)).(*filterNode)
	return &filterBlockNode{filter, p.whole("endfilter"), line}
}

func (p *parser) print(line int) node {
	n := &outputNode{}
	p.separated(tokBlockEnd, false, func() {
		n.items, n.lines = append(n.items, p.expression()), append(n.lines, line)
	})
	return n
}

// unavailable parses the template that a statement names.
func (p *parser) unavailable(what string, line int) *unavailableNode {
	return &unavailableNode{what: what, loads: []node{p.expression()}, line: line}
}

// skipNames consumes two names if they come next.
func (p *parser) skipNames(first, second string) bool {
	if !p.cur().isName(first) || !p.look().isName(second) {
		return false
	}
	p.next()
	p.next()
	return true
}

// context skips "with context" and "without context".
func (p *parser) context() bool {
	return p.skipNames("with", "context") || p.skipNames("without", "context")
}

func (p *parser) include(line int) node {
	n := p.unavailable("include", line)
	p.skipNames("ignore", "missing")
	p.context()
	return n
}

func (p *parser) importAll(line int) node {
	n := p.unavailable("import", line)
	p.expect("as")
	n.stores = []string{p.nameTarget().name}
	p.context()
	return n
}

func (p *parser) importFrom(line int) node {
	n := p.unavailable("import", line)
	p.expect("import")
	for {
		if len(n.stores) > 0 {
			p.expect(",")
		}
		if p.context() {
			return n
		}
		name := p.nameTarget()
		if strings.HasPrefix(name.name, "_") {
			raiseAt(name.line, assertionError, "names starting with an underline can not be imported")
		}
		if p.skip("as") {
			name = p.nameTarget()
		}
		n.stores = append(n.stores, name.name)
		if p.context() || p.cur().kind != "," {
			return n
		}
	}
}
