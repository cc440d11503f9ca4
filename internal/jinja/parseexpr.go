package jinja

import "slices"

// nameTarget parses a name that is assigned to.
func (p *parser) nameTarget() *nameNode {
	t := p.expect(tokName)
	n := &nameNode{t.text, store, t.line}
	p.checkTarget(n, t.line)
	return n
}

// assignTarget parses the left side of an assignment: a name, "ns.attribute" if attributes is set, or a tuple of these.
// A tuple also ends before the name end.
func (p *parser) assignTarget(end string, attributes bool) node {
	line := p.cur().line
	target := p.list(end, false, func() node { return p.primary(attributes) })
	setMode(target, store)
	p.checkTarget(target, line)
	return target
}

func setMode(n node, m mode) {
	switch n := n.(type) {
	case *nameNode:
		n.mode = m
	case *tupleNode:
		for _, item := range n.items {
			setMode(item, m)
		}
	}
}

var constants = map[string]any{"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil}

// checkTarget rejects expressions that cannot be assigned to.
func (p *parser) checkTarget(n node, line int) {
	switch n := n.(type) {
	case *nameNode:
		if _, ok := constants[n.name]; ok {
			p.failAt(line, "can't assign to 'name'")
		}
	case *attrTarget:
	case *tupleNode:
		for _, item := range n.items {
			p.checkTarget(item, line)
		}
	default:
		p.failAt(line, "can't assign to an expression")
	}
}

// tuple parses an expression, or several separated by commas.
func (p *parser) tuple(conditions bool) node { return p.tupleUntil(conditions, "") }

// tupleUntil is tuple, but also ends before a name.
func (p *parser) tupleUntil(conditions bool, end string) node {
	return p.list(end, false, func() node {
		if conditions {
			return p.expression()
		}
		return p.or()
	})
}

// list parses items separated by commas; a single one without a comma is not a tuple. In parentheses there may be none.
func (p *parser) list(end string, parentheses bool, read func() node) node {
	var items []node
	tuple := false
	for {
		if len(items) > 0 {
			p.expect(",")
		}
		if t := p.cur(); t.kind == tokPrintEnd || t.kind == tokBlockEnd || t.kind == ")" || end != "" && t.isName(end) {
			break
		}
		items = append(items, read())
		if p.cur().kind != "," {
			break
		}
		tuple = true
	}
	switch {
	case tuple:
		return &tupleNode{items}
	case len(items) == 1:
		return items[0]
	case !parentheses:
		p.fail("Expected an expression, got '%s'", p.cur().symbol())
	}
	return &tupleNode{}
}

// expression parses an expression, including inline if.
func (p *parser) expression() node {
	defer p.nest()()
	line := p.cur().line
	x := p.or()
	for n := 0; p.skip("if"); n++ {
		p.chain(n)
		c := &conditionNode{yes: x, test: p.or(), line: line}
		if p.skip("else") {
			c.no = p.expression()
		}
		x, line = c, p.cur().line
	}
	return x
}

// binary parses left-associative binary operators.
func (p *parser) binary(operand func() node, operators ...string) node {
	line := p.cur().line
	x := operand()
	for n := 0; slices.Contains(operators, p.cur().symbol()); n++ {
		p.chain(n)
		op := p.next().symbol()
		x = &binaryNode{op, x, operand(), line}
		line = p.cur().line
	}
	return x
}

func (p *parser) or() node { return p.binary(p.and, "or") }

func (p *parser) and() node { return p.binary(p.not, "and") }

func (p *parser) not() node {
	if t := p.cur(); t.isName("not") {
		defer p.nest()()
		p.next()
		return &unaryNode{"not", p.not(), t.line}
	}
	return p.compare()
}

func (p *parser) compare() node {
	n := &compareNode{line: p.cur().line}
	n.x = p.sum()
	for {
		switch op := p.cur().symbol(); {
		case slices.Contains([]string{"==", "!=", "<", "<=", ">", ">=", "in"}, op):
			p.next()
			n.ops = append(n.ops, op)
		case p.skipNames("not", "in"):
			n.ops = append(n.ops, "not in")
		case len(n.ops) == 0:
			return n.x
		default:
			return n
		}
		n.ys = append(n.ys, p.sum())
		p.chain(len(n.ops))
	}
}

func (p *parser) sum() node { return p.binary(p.concat, "+", "-") }

func (p *parser) concat() node {
	items := []node{p.product()}
	for p.skip("~") {
		items = append(items, p.product())
	}
	if len(items) == 1 {
		return items[0]
	}
	return &concatNode{items}
}

func (p *parser) product() node { return p.binary(p.power, "*", "/", "//", "%") }

func (p *parser) power() node { return p.binary(func() node { return p.unary(true) }, "**") }

func (p *parser) unary(filters bool) node {
	defer p.nest()()
	t := p.cur()
	var x node
	if t.kind == "-" || t.kind == "+" {
		p.next()
		x = &unaryNode{string(t.kind), p.unary(false), t.line}
	} else {
		x = p.primary(false)
	}
	x = p.postfix(x)
	if filters {
		x = p.filtered(x)
	}
	return x
}

// primary parses a name, a literal or a bracketed expression.
func (p *parser) primary(attributes bool) node {
	switch t := p.cur(); t.kind {
	case tokName:
		p.next()
		if v, ok := constants[t.text]; ok {
			return &constNode{v}
		}
		if attributes && p.skip(".") {
			return &attrTarget{t.text, p.expect(tokName).text, t.line}
		}
		return &nameNode{t.text, load, t.line}
	case tokString:
		text := ""
		for p.cur().kind == tokString {
			text += p.next().text
		}
		p.literals = append(p.literals, text)
		return &constNode{text}
	case tokInt, tokFloat:
		p.next()
		return &constNode{t.value}
	case "(":
		p.next()
		x := p.list("", true, p.expression)
		p.expect(")")
		return x
	case "[":
		return &listNode{p.elements("[", "]", p.expression)}
	case "{":
		n := &dictNode{}
		n.values = p.elements("{", "}", func() node {
			n.keys = append(n.keys, p.expression())
			p.expect(":")
			return p.expression()
		})
		return n
	default:
		p.fail("unexpected '%s'", t.symbol())
		return nil
	}
}

// elements parses elements in brackets, separated by commas; a trailing comma is allowed.
func (p *parser) elements(open, end kind, read func() node) (items []node) {
	p.expect(open)
	p.separated(end, true, func() { items = append(items, read()) })
	p.expect(end)
	return items
}

// postfix parses attributes, items and calls.
func (p *parser) postfix(x node) node {
	for n := 0; ; n++ {
		p.chain(n)
		switch p.cur().kind {
		case ".":
			x = p.attribute(x)
		case "[":
			x = p.subscript(x)
		case "(":
			x = p.call(x)
		default:
			return x
		}
	}
}

// filtered parses filters, tests and calls.
func (p *parser) filtered(x node) node {
	for n := 0; ; n++ {
		p.chain(n)
		switch t := p.cur(); {
		case t.kind == "|":
			p.next()
			x = p.filter(x)
		case t.isName("is"):
			x = p.test(x)
		case t.kind == "(":
			x = p.call(x)
		default:
			return x
		}
	}
}

func (p *parser) attribute(x node) node {
	line := p.next().line
	switch t := p.next(); t.kind {
	case tokName:
		return &getattrNode{x, t.text, line}
	case tokInt:
		return &getitemNode{x, &constNode{t.value}, line}
	default:
		p.failAt(t.line, "expected name or number")
		return nil
	}
}

func (p *parser) subscript(x node) node {
	line := p.next().line
	var args []node
	p.separated("]", false, func() { args = append(args, p.slice()) })
	p.expect("]")
	if _, ok := x.(*nameNode); !ok {
		p.slices = true
	}
	if len(args) == 1 {
		return &getitemNode{x, args[0], line}
	}
	return &getitemNode{x, &tupleNode{args}, line}
}

// slice parses an index, or start:stop:step with each part optional.
func (p *parser) slice() node {
	n := &sliceNode{}
	part := func() node {
		if k := p.cur().kind; k == ":" || k == "]" || k == "," {
			return nil
		}
		return p.expression()
	}
	if p.cur().kind != ":" {
		n.start = p.expression()
		if p.cur().kind != ":" {
			return n.start
		}
	}
	p.next()
	n.stop = part()
	if p.skip(":") {
		n.step = part()
	}
	return n
}

func (p *parser) call(x node) node {
	line := p.cur().line
	return &callNode{x, p.arguments(), line}
}

func (p *parser) arguments() arguments {
	var a arguments
	line := p.expect("(").line
	ensure := func(ok bool) {
		if !ok {
			p.failAt(line, "invalid syntax for function call expression")
		}
	}
	p.separated(")", true, func() {
		switch t := p.cur(); {
		case t.kind == "*":
			ensure(a.dynArgs == nil && a.dynNamed == nil)
			p.next()
			a.dynArgs = p.expression()
		case t.kind == "**":
			ensure(a.dynNamed == nil)
			p.next()
			a.dynNamed = p.expression()
		case t.kind == tokName && p.look().kind == "=":
			ensure(a.dynNamed == nil)
			p.next()
			p.next()
			ensure(!slices.ContainsFunc(a.kwargs, func(k keyword) bool { return k.name == t.text }))
			a.kwargs = append(a.kwargs, keyword{t.text, p.expression()})
		default:
			ensure(a.dynArgs == nil && a.dynNamed == nil && len(a.kwargs) == 0)
			a.args = append(a.args, p.expression())
		}
	})
	p.expect(")")
	return a
}

// filters parses any number of "|name".
func (p *parser) filters(x node) node {
	for n := 0; p.skip("|"); n++ {
		p.chain(n)
		x = p.filter(x)
	}
	return x
}

// dotted parses a name that may contain dots.
func (p *parser) dotted() string {
	name := p.expect(tokName).text
	for p.skip(".") {
		name += "." + p.expect(tokName).text
	}
	return name
}

// filter parses the name of a filter and its arguments.
func (p *parser) filter(x node) node {
	n := &filterNode{x: x, line: p.cur().line, name: p.dotted()}
	if p.cur().kind == "(" {
		n.args = p.arguments()
	}
	return n
}

func (p *parser) test(x node) node {
	line := p.next().line
	negated := p.skip("not")
	n := &filterNode{test: true, x: x, line: line, name: p.dotted()}
	switch t := p.cur(); {
	case t.kind == "(":
		n.args = p.arguments()
	case t.isName("is"):
		p.fail("You cannot chain multiple tests with is")
	case slices.Contains([]string{"else", "or", "and"}, t.symbol()):
	case slices.Contains([]kind{tokName, tokString, tokInt, tokFloat, "[", "{"}, t.kind):
		n.args.args = []node{p.postfix(p.primary(false))}
	}
	if negated {
		return &unaryNode{"not", n, line}
	}
	return n
}
