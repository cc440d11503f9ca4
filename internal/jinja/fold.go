package jinja

// Jinja2 computes expressions of constants when it compiles a template. There a slice of what cannot be sliced is
// undefined, and no error, unless the slice is all of an expression that is not printed.

// foldable tells whether an expression is computed when a template is compiled.
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

// folded compiles an expression of constants.
func (c *compiler) folded(n node, f *frame) expr {
	c.folding = true
	defer func() { c.folding = false }()
	return c.expr(n, f)
}

// printed compiles an expression whose value is written.
func (c *compiler) printed(n node, f *frame) expr {
	if c.slices && foldable(n) {
		return c.folded(n, f)
	}
	return c.expr(n, f)
}
