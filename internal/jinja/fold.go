package jinja

// Constant folding: Jinja2 evaluates constant expressions when it compiles a template. Then a slice of a value that
// cannot be sliced is undefined instead of an error, unless it is the whole of an expression that is not printed.

// foldable reports whether an expression is evaluated when the template is compiled.
func foldable(n node) bool {
	switch n := n.(type) {
	case *constNode:
		return true
	case *nameNode, *callNode:
		return false
	case *conditionNode:
		if n.no == nil {
			return false
		}
	case *filterNode:
		switch n.name {
		case "map", "select", "reject", "selectattr", "rejectattr", "random":
			return false
		}
		if n.x == nil {
			return false
		}
	}
	for _, child := range children(n) {
		if !foldable(child) {
			return false
		}
	}
	return true
}

func isSlice(n node) bool {
	g, ok := n.(*getitemNode)
	if !ok {
		return false
	}
	_, ok = g.arg.(*sliceNode)
	return ok
}

// folded compiles a constant expression.
func (c *compiler) folded(n node, f *frame) expr {
	c.folding = true
	defer func() { c.folding = false }()
	return c.expr(n, f)
}

// printed compiles an expression whose value is printed.
func (c *compiler) printed(n node, f *frame) expr {
	if c.slices && foldable(n) {
		return c.folded(n, f)
	}
	return c.expr(n, f)
}
