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
	switch n := n.(type) {
	case *constNode:
		return func(*run, *env) any { return n.value }
	case *nameNode:
		return f.read(n.name, n.line)
	case *tupleNode:
		items := c.exprs(n.items, f)
		return func(r *run, e *env) any { return &list{items: r.evaluate(items, e), tuple: true} }
	case *listNode:
		items := c.exprs(n.items, f)
		return func(r *run, e *env) any { return &list{items: r.evaluate(items, e), own: true} }
	case *dictNode:
		return c.dict(n, f)
	case *unaryNode:
		return c.unary(n, f)
	case *binaryNode:
		return c.binary(n, f)
	case *concatNode:
		return c.concat(n, f)
	case *compareNode:
		return c.compare(n, f)
	case *conditionNode:
		return c.condition(n, f)
	case *getattrNode:
		x := c.expr(n.x, f)
		return func(r *run, e *env) any { return r.getattr(x(r, e), n.attr) }
	case *getitemNode:
		return c.getitem(n, f)
	case *callNode:
		return c.call(n, f, nil)
	case *filterNode:
		return c.filter(n, f)
	case *testNode:
		return c.test(n, f)
	case *sliceNode:
		return c.slice(n, f)
	}
	panic("jinja: an expression without code")
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

func (c *compiler) dict(n *dictNode, f *frame) expr {
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

func (c *compiler) unary(n *unaryNode, f *frame) expr {
	x := c.expr(n.x, f)
	switch n.op {
	case "not":
		return func(r *run, e *env) any { return !truth(x(r, e)) }
	case "-":
		return func(r *run, e *env) any { return negate(x(r, e)) }
	}
	return func(r *run, e *env) any { return positive(x(r, e)) }
}

func (c *compiler) binary(n *binaryNode, f *frame) expr {
	x, y := c.expr(n.x, f), c.expr(n.y, f)
	switch n.op {
	case "and":
		return func(r *run, e *env) any {
			if v := x(r, e); !truth(v) {
				return v
			}
			return y(r, e)
		}
	case "or":
		return func(r *run, e *env) any {
			if v := x(r, e); truth(v) {
				return v
			}
			return y(r, e)
		}
	}
	op := n.op
	return func(r *run, e *env) any {
		a := x(r, e)
		return r.operate(op, a, y(r, e))
	}
}

func (c *compiler) concat(n *concatNode, f *frame) expr {
	items := c.exprs(n.items, f)
	return func(r *run, e *env) any {
		parts := make([]string, len(items))
		for i, v := range r.evaluate(items, e) {
			parts[i] = r.str(v)
		}
		return r.joined(parts, "")
	}
}

func (c *compiler) compare(n *compareNode, f *frame) expr {
	x, ys, ops := c.expr(n.x, f), c.exprs(n.ys, f), n.ops
	return func(r *run, e *env) any {
		a := x(r, e)
		for i, y := range ys {
			b := y(r, e)
			if !r.compare(ops[i], a, b) {
				return false
			}
			a = b
		}
		return true
	}
}

func (c *compiler) condition(n *conditionNode, f *frame) expr {
	g := f.branch()
	test, yes := c.expr(n.test, g), c.expr(n.yes, g)
	no := func(*run, *env) any {
		return &undefined{hint: "the inline if-expression evaluated to false and no else section was defined."}
	}
	if n.no != nil {
		no = c.expr(n.no, g)
	}
	return func(r *run, e *env) any {
		if truth(test(r, e)) {
			return yes(r, e)
		}
		return no(r, e)
	}
}

func (c *compiler) getitem(n *getitemNode, f *frame) expr {
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

func (c *compiler) slice(n *sliceNode, f *frame) expr {
	part := func(n node) expr {
		if n == nil {
			return func(*run, *env) any { return nil }
		}
		return c.expr(n, f)
	}
	start, stop, step := part(n.start), part(n.stop), part(n.step)
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
	var more, moreNamed expr
	if a.dynArgs != nil {
		more = c.expr(a.dynArgs, f)
	}
	if a.dynNamed != nil {
		moreNamed = c.expr(a.dynNamed, f)
	}
	if len(values) == 0 && more == nil && moreNamed == nil && caller == nil {
		return func(r *run, e *env) arg { return arg{pos: r.evaluate(pos, e)} }
	}
	return func(r *run, e *env) arg {
		out := arg{pos: r.evaluate(pos, e), named: NewDict()}
		if more != nil {
			out.pos = append(out.pos, r.items(more(r, e))...)
		}
		for i, v := range values {
			out.named.set(r, a.kwargs[i].name, v(r, e))
		}
		if caller != nil {
			r.addNamed(out.named, "caller", caller(r, e))
		}
		if moreNamed != nil {
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

func (c *compiler) call(n *callNode, f *frame, caller expr) expr {
	args := c.arguments(&n.args, f, caller)
	fn := c.expr(n.f, f)
	return func(r *run, e *env) any {
		v := fn(r, e)
		return r.call(v, args(r, e), n.line)
	}
}

func (c *compiler) filter(n *filterNode, f *frame) expr {
	fn, ok := filters[n.name]
	c.known("filter", n.name, ok, f, n.line)
	x := func(r *run, _ *env) any { return r.blockText }
	if n.x != nil {
		x = c.expr(n.x, f)
	}
	args := c.arguments(&n.args, f, nil)
	return func(r *run, e *env) any {
		v := x(r, e)
		a := args(r, e)
		if fn == nil {
			unknown("filter", n.name)
		}
		r.step(n.line)
		r.look(v)
		return fn(r, v, a)
	}
}

func (c *compiler) test(n *testNode, f *frame) expr {
	fn, ok := tests[n.name]
	c.known("test", n.name, ok, f, n.line)
	x, args := c.expr(n.x, f), c.arguments(&n.args, f, nil)
	return func(r *run, e *env) any {
		v := x(r, e)
		a := args(r, e)
		if fn == nil {
			unknown("test", n.name)
		}
		r.look(v)
		return fn(r, v, a)
	}
}
