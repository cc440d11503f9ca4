package jinja

func (c *compiler) exprs(nodes []node, f *frame) []expr {
	code := make([]expr, len(nodes))
	for i, n := range nodes {
		code[i] = c.expr(n, f)
	}
	return code
}

func (c *compiler) expr(n node, f *frame) expr {
	if c.slices && !c.folding && !isSlice(n) && foldable(n) {
		return c.folded(n, f)
	}
	return n.(expressionNode).compile(c, f)
}

func (n *constNode) compile(*compiler, *frame) expr {
	return func(*run, *env) any { return n.value }
}

func (n *nameNode) compile(_ *compiler, f *frame) expr { return f.read(n.name, n.line) }

func (n *tupleNode) compile(c *compiler, f *frame) expr {
	items := c.exprs(n.items, f)
	return func(r *run, e *env) any { return &list{items: r.evaluate(items, e), tuple: true} }
}

func (n *listNode) compile(c *compiler, f *frame) expr {
	items := c.exprs(n.items, f)
	return func(r *run, e *env) any { return &list{items: r.evaluate(items, e), own: true} }
}

func (n *getattrNode) compile(c *compiler, f *frame) expr {
	x := c.expr(n.x, f)
	return func(r *run, e *env) any { return r.getattr(x(r, e), n.attr) }
}

// optional is expr for a node that may be nil, whose value then is otherwise.
func (c *compiler) optional(n node, f *frame, otherwise any) expr {
	if n == nil {
		return func(*run, *env) any { return otherwise }
	}
	return c.expr(n, f)
}

// evaluate returns the values of expressions in a new slice.
func (r *run) evaluate(code []expr, e *env) []any {
	out := make([]any, len(code))
	for i, x := range code {
		out[i] = x(r, e)
	}
	r.charge(16 * len(out))
	return out
}

func (n *dictNode) compile(c *compiler, f *frame) expr {
	keys, values := c.exprs(n.keys, f), c.exprs(n.values, f)
	return func(r *run, e *env) any {
		d := NewDict()
		for i, k := range keys {
			key := k(r, e)
			value := values[i](r, e)
			d.set(r, key, value)
		}
		return d
	}
}

func (n *unaryNode) compile(c *compiler, f *frame) expr {
	x := c.expr(n.x, f)
	switch n.op {
	case "not":
		return func(r *run, e *env) any { return !truth(x(r, e)) }
	case "-":
		return func(r *run, e *env) any { return negate(x(r, e)) }
	}
	return func(r *run, e *env) any { return positive(x(r, e)) }
}

func (n *binaryNode) compile(c *compiler, f *frame) expr {
	x, y := c.expr(n.x, f), c.expr(n.y, f)
	switch n.op {
	case "and", "or":
		enough := n.op == "or"
		return func(r *run, e *env) any {
			if v := x(r, e); truth(v) == enough {
				return v
			}
			return y(r, e)
		}
	}
	return func(r *run, e *env) any {
		a := x(r, e)
		return r.operate(n.op, a, y(r, e))
	}
}

func (n *concatNode) compile(c *compiler, f *frame) expr {
	items := c.exprs(n.items, f)
	return func(r *run, e *env) any {
		parts := make([]string, len(items))
		for i, v := range r.evaluate(items, e) {
			parts[i] = r.str(v)
		}
		return r.joined(parts, "")
	}
}

func (n *compareNode) compile(c *compiler, f *frame) expr {
	x, ys := c.expr(n.x, f), c.exprs(n.ys, f)
	return func(r *run, e *env) any {
		a := x(r, e)
		for i, y := range ys {
			b := y(r, e)
			if !r.compare(n.ops[i], a, b) {
				return false
			}
			a = b
		}
		return true
	}
}

func (n *conditionNode) compile(c *compiler, f *frame) expr {
	g := f.branch()
	test, yes := c.expr(n.test, g), c.expr(n.yes, g)
	no := c.optional(n.no, g, &undefined{
		hint: "the inline if-expression evaluated to false and no else section was defined.",
	})
	return func(r *run, e *env) any {
		if truth(test(r, e)) {
			return yes(r, e)
		}
		return no(r, e)
	}
}

func (n *getitemNode) compile(c *compiler, f *frame) expr {
	x, arg := c.expr(n.x, f), c.expr(n.arg, f)
	if isSlice(n) && !c.folding {
		return func(r *run, e *env) any {
			v := x(r, e)
			return r.slice(v, arg(r, e).(slice))
		}
	}
	return func(r *run, e *env) any {
		v := x(r, e)
		return r.getitem(v, arg(r, e))
	}
}

// slice is the value of start:stop:step. A part is nil if it is omitted or None.
type slice struct{ start, stop, step any }

func (n *sliceNode) compile(c *compiler, f *frame) expr {
	start, stop, step := c.optional(n.start, f, nil), c.optional(n.stop, f, nil), c.optional(n.step, f, nil)
	return func(r *run, e *env) any { return slice{start(r, e), stop(r, e), step(r, e)} }
}

// arg is the arguments of a call.
type arg struct {
	pos   []any
	named *Dict // nil if there are none
}

// arguments compiles the arguments of a call. caller is the argument that a call block adds, or nil.
func (c *compiler) arguments(a *arguments, f *frame, caller expr) func(r *run, e *env) arg {
	pos := c.exprs(a.args, f)
	var values []expr
	for _, k := range a.kwargs {
		values = append(values, c.expr(k.value, f))
	}
	more, moreNamed := c.optional(a.dynArgs, f, newList()), c.optional(a.dynNamed, f, NewDict())
	if len(values) == 0 && a.dynArgs == nil && a.dynNamed == nil && caller == nil {
		return func(r *run, e *env) arg { return arg{pos: r.evaluate(pos, e)} }
	}
	return func(r *run, e *env) arg {
		out := arg{pos: r.evaluate(pos, e), named: NewDict()}
		out.pos = append(out.pos, r.items(more(r, e))...)
		for i, v := range values {
			out.named.set(r, a.kwargs[i].name, v(r, e))
		}
		if caller != nil {
			r.addNamed(out.named, "caller", caller(r, e))
		}
		value := moreNamed(r, e)
		m, ok := value.(*Dict)
		if !ok {
			raise(typeError, "argument after ** must be a mapping, not %s", typeName(value))
		}
		for i, k := range m.keys {
			name, ok := k.(string)
			if !ok {
				raise(typeError, "keywords must be strings")
			}
			r.addNamed(out.named, name, m.values[i])
		}
		return out
	}
}

// addNamed adds a keyword argument, which must not be repeated.
func (r *run) addNamed(d *Dict, name string, value any) {
	if _, ok := d.Get(name); ok {
		raise(typeError, "got multiple values for keyword argument %s", reprString(name))
	}
	d.set(r, name, value)
}

func (n *callNode) compile(c *compiler, f *frame) expr { return n.compileWith(c, f, nil) }

// compileWith compiles a call with the argument that a call block adds, or nil.
func (n *callNode) compileWith(c *compiler, f *frame, caller expr) expr {
	args := c.arguments(&n.args, f, caller)
	fn := c.expr(n.f, f)
	return func(r *run, e *env) any {
		v := fn(r, e)
		return r.call(v, args(r, e), n.line)
	}
}

func (n *filterNode) compile(c *compiler, f *frame) expr {
	what, table := "filter", filters
	if n.test {
		what, table = "test", tests
	}
	fn := table[n.name]
	if fn == nil && !f.soft {
		raiseAt(n.line, assertionError, "No %s named %s.", what, reprString(n.name))
	}
	x := func(r *run, _ *env) any { return r.blockText }
	if n.x != nil {
		x = c.expr(n.x, f)
	}
	args := c.arguments(&n.args, f, nil)
	return func(r *run, e *env) any {
		v := x(r, e)
		a := args(r, e)
		if fn == nil {
			raise(runtimeError, "No %s named %s found.", what, reprString(n.name))
		}
		if !n.test {
			r.step(n.line)
		}
		r.look(v)
		return fn(r, v, a)
	}
}

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
	for _, child := range n.children() {
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
