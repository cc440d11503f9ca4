package jinja

import (
	"slices"
)

// signal is how a statement ended.
type signal int

const (
	goOn signal = iota
	breakLoop
	continueLoop
)

// stmt and expr are compiled code. e has the variables of the function that contains the code.
type (
	stmt func(r *run, e *env) signal
	expr func(r *run, e *env) any
)

// env is the variables of one call of a function.
type env struct {
	vars []any
	up   *env // of the function around it
}

// missing is the value of an unset variable.
type missingValue struct{}

var missing any = missingValue{}

func newEnv(f *function, up *env) *env {
	e := &env{make([]any, len(f.slots)), up}
	for i := range e.vars {
		e.vars[i] = missing
	}
	return e
}

// compiler compiles a parsed template to closures.
type compiler struct {
	blocks  map[string]*blockNode
	slices  bool // the template slices literals
	folding bool // an expression of constants is being compiled
}

func compile(src *source) *Template {
	c := &compiler{blocks: map[string]*blockNode{}, slices: src.slices}
	c.collectBlocks(src.body)
	t := &Template{source: src, blocks: map[string]*function{}}
	t.root = c.root(src.body, true)
	for name, b := range c.blocks {
		t.blocks[name] = c.root(b.body, false)
	}
	return t
}

func (c *compiler) collectBlocks(nodes []node) {
	for _, n := range nodes {
		if b, ok := n.(*blockNode); ok {
			if c.blocks[b.name] != nil {
				raiseAt(b.line, assertionError, "block '%s' defined twice", b.name)
			}
			c.blocks[b.name] = b
		}
		c.collectBlocks(n.children())
	}
}

// root compiles the template or a block.
func (c *compiler) root(body []node, toplevel bool) *function {
	f := newFrame(newFunction(nil))
	selfSlot, superSlot := -1, -1
	used := mentions(body, "self", "super")
	if used["self"] {
		selfSlot = f.declare("self")
	}
	if used["super"] && !toplevel {
		superSlot = f.declare("super")
	}
	f.see(body...)
	f.toplevel = toplevel
	code := c.statements(body, f)
	enter := f.enter()
	f.fn.body = func(r *run, e *env) signal {
		if selfSlot >= 0 {
			e.vars[selfSlot] = templateSelf{}
		}
		if superSlot >= 0 {
			e.vars[superSlot] = &undefined{hint: "there is no parent block called by that name."}
		}
		enter(r, e)
		return code(r, e)
	}
	return f.fn
}

// enter returns code that initializes the variables of a frame.
func (f *frame) enter() func(r *run, e *env) {
	type initial struct {
		slot int
		name string // of the context
		from expr   // for an alias
	}
	var list []initial
	for _, name := range f.order {
		switch v := f.vars[name]; v.action {
		case actResolve:
			list = append(list, initial{slot: v.slot, name: name})
		case actAlias:
			list = append(list, initial{slot: v.slot, from: f.variable(v.outer, name)})
		case actUndefined:
			list = append(list, initial{slot: v.slot})
		case actParam:
		}
	}
	return func(r *run, e *env) {
		for i := range list {
			switch in := &list[i]; {
			case in.from != nil:
				e.vars[in.slot] = in.from(r, e)
			case in.name != "":
				e.vars[in.slot] = r.resolve(in.name)
			default:
				e.vars[in.slot] = missing
			}
		}
	}
}

// leave returns code that unsets the variables of a frame.
func (f *frame) leave() func(e *env) {
	var slots []int
	for _, v := range f.vars {
		slots = append(slots, v.slot)
	}
	return func(e *env) {
		for _, s := range slots {
			e.vars[s] = missing
		}
	}
}

// variable returns code that reads a variable, which may be missing.
func (f *frame) variable(owner *frame, name string) expr {
	up, slot := 0, owner.vars[name].slot
	for fn := f.fn; fn != owner.fn; fn = fn.parent { // how many functions further out
		up++
	}
	if up == 0 {
		return func(_ *run, e *env) any { return e.vars[slot] }
	}
	return func(_ *run, e *env) any {
		for range up {
			e = e.up
		}
		return e.vars[slot]
	}
}

// read returns code that reads a name.
func (f *frame) read(name string, line int) expr {
	owner, _ := f.find(name)
	if owner == nil {
		raiseAt(line, assertionError,
			"Tried to resolve a name to a reference that was unknown to the frame (%s)", reprString(name))
	}
	value, unknown := f.variable(owner, name), &undefined{name: name}
	return func(r *run, e *env) any {
		if v := value(r, e); v != missing {
			return v
		}
		return unknown
	}
}

// setter returns code that assigns to a target.
type setter func(r *run, e *env, value any)

func (c *compiler) target(n node, f *frame) setter {
	switch n := n.(type) {
	case *nameNode:
		slot := f.vars[n.name].slot
		return func(_ *run, e *env, value any) { e.vars[slot] = value }
	case *attrTarget:
		holder := f.read(n.name, n.line)
		return func(r *run, e *env, value any) {
			ns, ok := holder(r, e).(*namespace)
			if !ok {
				raise(runtimeError, "cannot assign attribute on non-namespace object")
			}
			checkAttribute(n.attr)
			ns.attrs.Set(n.attr, value)
		}
	}
	var parts []setter
	for _, item := range n.(*tupleNode).items {
		parts = append(parts, c.target(item, f))
	}
	return func(r *run, e *env, value any) {
		for i, v := range r.unpack(value, len(parts)) {
			parts[i](r, e, v)
		}
	}
}

// names lists the names that a target sets.
func names(n node) []string {
	switch n := n.(type) {
	case *nameNode:
		return []string{n.name}
	case *tupleNode:
		var out []string
		for _, item := range n.items {
			out = append(out, names(item)...)
		}
		return out
	}
	return nil
}

// export returns code that copies names to the context if f is the frame of the template: macros and blocks that are
// called later find them there.
func (c *compiler) export(f *frame, list []string) func(r *run, e *env) {
	if !f.toplevel {
		return func(*run, *env) {}
	}
	slots := make([]int, len(list))
	for i, name := range list {
		slots[i] = f.vars[name].slot
	}
	return func(r *run, e *env) {
		for i, name := range list {
			r.vars[name] = e.vars[slots[i]]
		}
	}
}

// statements compiles a sequence of statements.
func (c *compiler) statements(nodes []node, f *frame) stmt {
	code := make([]stmt, len(nodes))
	for i, n := range nodes {
		code[i] = n.(statementNode).compile(c, f)
	}
	return func(r *run, e *env) signal {
		for _, s := range code {
			if sig := s(r, e); sig != goOn {
				return sig
			}
		}
		return goOn
	}
}

func (n *outputNode) compile(c *compiler, f *frame) stmt {
	type item struct {
		text  string
		value expr
		line  int
	}
	items := make([]item, len(n.items))
	for i, child := range n.items {
		if d, ok := child.(*dataNode); ok {
			items[i] = item{text: d.text}
		} else {
			items[i] = item{value: c.printed(child, f), line: n.lines[i]}
		}
	}
	return func(r *run, e *env) signal {
		for i := range items {
			it := &items[i]
			if it.value == nil {
				r.write(it.text)
				continue
			}
			r.step(it.line)
			r.write(r.str(it.value(r, e)))
		}
		return goOn
	}
}

func (n *setNode) compile(c *compiler, f *frame) stmt {
	value, assign := c.expr(n.value, f), c.target(n.target, f)
	export := c.export(f, names(n.target))
	return func(r *run, e *env) signal {
		r.step(n.line)
		assign(r, e, value(r, e))
		export(r, e)
		return goOn
	}
}

func (n *setBlockNode) compile(c *compiler, f *frame) stmt {
	g := f.inner()
	g.see(n.body...)
	body, assign, export := c.captured(n.body, n.filter, g), c.target(n.target, f), c.export(f, names(n.target))
	return func(r *run, e *env) signal {
		r.step(n.line)
		value, sig := body(r, e)
		if sig != goOn {
			return sig
		}
		assign(r, e, value)
		export(r, e)
		return goOn
	}
}

// captured returns code that runs statements in a frame of their own, and returns their output, filtered if there is a
// filter.
func (c *compiler) captured(nodes []node, n *filterNode, g *frame) func(r *run, e *env) (any, signal) {
	body := c.statements(nodes, g)
	filter := func(r *run, _ *env) any { return r.blockText }
	if n != nil {
		filter = n.compile(c, g)
	}
	enter, leave := g.enter(), g.leave()
	return func(r *run, e *env) (value any, sig signal) {
		enter(r, e)
		text := r.capture(func() { sig = body(r, e) })
		if sig != goOn {
			return nil, sig
		}
		r.blockText = text // the innermost filter reads it before anything else
		value = filter(r, e)
		leave(e)
		return value, goOn
	}
}

func (n *ifNode) compile(c *compiler, f *frame) stmt {
	g := f.branch()
	type branch struct {
		line int
		test expr
		body stmt
	}
	var branches []branch
	for _, b := range append([]*ifNode{n}, n.elifs...) {
		branches = append(branches, branch{b.line, c.expr(b.test, g), c.statements(b.body, g)})
	}
	orElse := c.statements(n.orElse, g)
	return func(r *run, e *env) signal {
		for i := range branches {
			b := &branches[i]
			r.step(b.line)
			if truth(b.test(r, e)) {
				return b.body(r, e)
			}
		}
		return orElse(r, e)
	}
}

func (n *withNode) compile(c *compiler, f *frame) stmt {
	g := f.inner()
	g.see(n.targets...)
	g.see(n.body...)
	var values []expr
	var targets []setter
	for i := range n.targets {
		values, targets = append(values, c.expr(n.values[i], f)), append(targets, c.target(n.targets[i], g))
	}
	body := c.statements(n.body, g)
	return g.scoped(func(r *run, e *env) signal {
		for i, v := range values {
			targets[i](r, e, v(r, e))
		}
		return body(r, e)
	})
}

func (n *scopeNode) compile(c *compiler, f *frame) stmt {
	return c.framed(n.body, f.inner())
}

func (n *filterBlockNode) compile(c *compiler, f *frame) stmt {
	g := f.inner()
	g.see(n.body...)
	g.visit(n.filter)
	body := c.captured(n.body, n.filter, g)
	return func(r *run, e *env) signal {
		r.step(n.line)
		value, sig := body(r, e)
		if sig == goOn {
			r.writeText(value)
		}
		return sig
	}
}

func (n *blockNode) compile(c *compiler, f *frame) stmt {
	scope := map[string]expr{}
	for g := f; n.scoped && g != nil; g = g.parent {
		for name := range g.stores {
			if scope[name] == nil {
				scope[name] = f.variable(g, name)
			}
		}
	}
	return func(r *run, e *env) signal {
		r.step(n.line)
		if n.required {
			raise(runtimeError, "Required block '%s' not found", n.name)
		}
		locals := map[string]any{}
		for name, value := range scope {
			locals[name] = value(r, e)
		}
		r.block(n.name, locals)
		return goOn
	}
}

func (n *jumpNode) compile(c *compiler, f *frame) stmt {
	if f.loops == 0 {
		raiseAt(n.line, syntaxError, "break or continue outside of a loop")
	}
	return func(*run, *env) signal { return n.signal }
}

func (n *unavailableNode) compile(c *compiler, f *frame) stmt {
	if n.what == "extends" && !f.toplevel {
		raiseAt(n.line, assertionError, "cannot use extend from a non top-level scope")
	}
	loads := c.exprs(n.loads, f)
	return func(r *run, e *env) signal {
		r.step(n.line)
		for _, l := range loads {
			l(r, e)
		}
		raise(typeError, "no loader for this environment specified: a chat template cannot %s others", n.what)
		return goOn
	}
}

// checkLoopName rejects "loop" as a loop's target.
func checkLoopName(n node) {
	if name, ok := n.(*nameNode); ok && name.mode == store && name.name == "loop" {
		raiseAt(name.line, assertionError, "Can't assign to special loop variable in for-loop target")
	}
	for _, child := range n.children() {
		checkLoopName(child)
	}
}

func (n *forNode) compile(c *compiler, f *frame) stmt {
	checkLoopName(n)
	iter, fn := c.expr(n.iter, f), f.fn
	if n.recursive { // it is a function, which loop(items) calls
		fn = newFunction(f.fn)
	}
	body := c.loopBody(n, f, fn)
	return func(r *run, e *env) signal {
		r.step(n.line)
		if !n.recursive {
			return body(r, e, iter(r, e), nil, 0)
		}
		var again recursion
		again = func(items any, depth int) string {
			defer r.enter()()
			return r.capture(func() { body(r, newEnv(fn, e), items, again, depth) })
		}
		r.write(again(iter(r, e), 0))
		return goOn
	}
}

// recursion renders a recursive loop for other items.
type recursion func(items any, depth int) string

// loopFunc runs a loop over items.
type loopFunc func(r *run, e *env, items any, again recursion, depth int) signal

// loopBody compiles a loop in f over given items, as a part of fn.
func (c *compiler) loopBody(n *forNode, f *frame, fn *function) loopFunc {
	g := f.within(fn)
	g.loops++
	loopSlot := g.declare("loop")
	for _, name := range names(n.target) {
		g.declare(name)
	}
	g.see(n.body...)
	assign, body := c.target(n.target, g), c.statements(n.body, g)
	filter, orElse := c.loopFilter(n, f, fn), c.framed(n.orElse, f.within(fn))
	enter, leave := g.enter(), g.leave()
	return func(r *run, e *env, items any, again recursion, depth int) signal {
		if filter != nil {
			items = filter(r, e, items)
		}
		l := newLoop(r, items, again, depth)
		completed := false
		for l.advance() {
			r.step(n.line)
			assign(r, e, l.current)
			enter(r, e)
			e.vars[loopSlot] = l
			sig := body(r, e)
			if sig == breakLoop {
				break
			}
			completed = completed || sig == goOn
		}
		leave(e)
		if !completed {
			return orElse(r, e)
		}
		return goOn
	}
}

// framed compiles statements in a frame of their own.
func (c *compiler) framed(nodes []node, g *frame) stmt {
	g.see(nodes...)
	return g.scoped(c.statements(nodes, g))
}

// scoped returns code that runs body with the variables of the frame, which it unsets at the end unless that leaves a
// loop.
func (f *frame) scoped(body stmt) stmt {
	enter, leave := f.enter(), f.leave()
	return func(r *run, e *env) signal {
		enter(r, e)
		sig := body(r, e)
		if sig == goOn {
			leave(e)
		}
		return sig
	}
}

// loopFilter compiles the condition of a loop to a function that yields the items for which it holds, one at a time.
func (c *compiler) loopFilter(n *forNode, f *frame, fn *function) func(r *run, e *env, items any) any {
	if n.test == nil {
		return nil
	}
	g := f.within(newFunction(fn))
	for _, name := range names(n.target) {
		g.declare(name)
	}
	g.visit(n.test)
	enter, assign, test := g.enter(), c.target(n.target, g), c.expr(n.test, g)
	return func(r *run, e *env, items any) any {
		inner := newEnv(g.fn, e)
		return r.lazily(items, func() func(any) (any, bool) {
			enter(r, inner)
			return func(item any) (any, bool) {
				assign(r, inner, item)
				return item, truth(test(r, inner))
			}
		})
	}
}

// macroCode is the code of a macro, without the environment of its definition.
type macroCode struct {
	name                                   string
	params                                 []string
	fn                                     *function
	bind                                   func(r *run, e *env, values []any)
	wantsCaller, wantsKwargs, wantsVarargs bool
	explicitCaller                         bool
}

// macroBody compiles a macro or the body of a call block.
func (c *compiler) macroBody(n *macroNode, f *frame) *macroCode {
	g := f.within(newFunction(f.fn))
	m := &macroCode{name: n.name, fn: g.fn}
	used := mentions(n.body, "caller", "kwargs", "varargs")
	for i, a := range n.args {
		m.params = append(m.params, a.name)
		if a.name == "caller" && used["caller"] && i < len(n.args)-len(n.defaults) {
			raiseAt(n.line, assertionError, `When defining macros or call blocks the special "caller" argument `+
				`must be omitted or be given a default.`)
		}
	}
	m.explicitCaller = slices.Contains(m.params, "caller")
	g.see(n.children()...)
	order := slices.Clone(m.params)
	extra := func(name string) bool {
		if !used[name] || slices.Contains(m.params, name) {
			return false
		}
		g.declare(name)
		order = append(order, name)
		return true
	}
	m.wantsCaller, m.wantsKwargs, m.wantsVarargs = extra("caller"), extra("kwargs"), extra("varargs")
	m.wantsCaller = m.wantsCaller || used["caller"]
	m.bind = c.parameters(n, g, order)
	g.fn.body = c.statements(n.body, g)
	return m
}

// parameters returns code that assigns the parameters in order, and defaults to missing ones.
func (c *compiler) parameters(n *macroNode, g *frame, order []string) func(r *run, e *env, values []any) {
	slots := make([]int, len(order))
	for i, name := range order {
		slots[i] = g.vars[name].slot
	}
	defaults := make([]expr, len(n.args))
	for i, a := range n.args {
		if at := i - (len(n.args) - len(n.defaults)); at >= 0 {
			defaults[i] = c.expr(n.defaults[at], g)
			continue
		}
		unknown := &undefined{hint: "parameter " + reprString(a.name) + " was not provided", name: a.name}
		defaults[i] = func(*run, *env) any { return unknown }
	}
	enter := g.enter()
	return func(r *run, e *env, values []any) {
		for i, v := range values {
			e.vars[slots[i]] = v
		}
		enter(r, e)
		for i, d := range defaults {
			if e.vars[slots[i]] == missing {
				e.vars[slots[i]] = d(r, e)
			}
		}
	}
}

func (n *macroNode) compile(c *compiler, f *frame) stmt {
	code := c.macroBody(n, f)
	slot := f.vars[n.name].slot
	export := c.export(f, []string{n.name})
	return func(r *run, e *env) signal {
		r.step(n.line)
		e.vars[slot] = &macro{code, e}
		export(r, e)
		return goOn
	}
}

func (n *callBlockNode) compile(c *compiler, f *frame) stmt {
	code := c.macroBody(n.macro, f)
	if n.call == nil {
		return func(r *run, e *env) signal {
			r.step(n.line)
			r.generation((&macro{code, e}).call(r, arg{}))
			return goOn
		}
	}
	call := n.call.compileWith(c, f, func(_ *run, e *env) any { return &macro{code, e} })
	return func(r *run, e *env) signal {
		r.step(n.line)
		r.writeText(call(r, e))
		return goOn
	}
}
