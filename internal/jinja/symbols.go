package jinja

import (
	"maps"
	"slices"
)

// action is how a variable of a frame is initialized.
type action int

const (
	actParam     action = iota // by the caller: an argument, an item of a loop
	actResolve                 // from the context, by name
	actAlias                   // from a variable of an outer frame
	actUndefined               // unset until it is assigned
)

// variable is a name in a frame.
type variable struct {
	action action
	outer  *frame // of an alias: the frame of the variable
	slot   int
}

// frame is the names of one scope: the template, a block, a macro, a loop or another statement with local variables.
// Names are resolved to variables when the template is compiled, as in Jinja2 (its module idtracking), so that the
// visibility of names that are set in loops and branches is the same.
type frame struct {
	parent *frame
	fn     *function
	level  int
	vars   map[string]*variable
	order  []string // the names in vars, in order of declaration
	stores map[string]bool

	toplevel bool // its variables are visible in macros and blocks
	soft     bool // within an if: unknown filters are errors only when they are reached
	loops    int  // enclosing loops within the function
}

// function is code with an environment of its own: the template, a block, a macro, a recursive loop, or the condition
// of a loop.
type function struct {
	parent *function
	slots  map[slotKey]int
	body   stmt
}

// slotKey identifies a variable within a function. Successive frames of the same level share slots.
type slotKey struct {
	level int
	name  string
}

func newFunction(parent *function) *function {
	return &function{parent: parent, slots: map[slotKey]int{}}
}

func (f *function) slot(level int, name string) int {
	key := slotKey{level, name}
	n, ok := f.slots[key]
	if !ok {
		n = len(f.slots)
		f.slots[key] = n
	}
	return n
}

func newFrame(fn *function) *frame {
	return &frame{fn: fn, vars: map[string]*variable{}, stores: map[string]bool{}}
}

// inner returns a frame within f, of the same function.
func (f *frame) inner() *frame { return f.within(f.fn) }

// within returns a frame within f, of fn, which is f's function or one in it.
func (f *frame) within(fn *function) *frame {
	g := newFrame(fn)
	g.parent, g.level = f, f.level+1
	if fn == f.fn {
		g.loops = f.loops
	}
	return g
}

// branch returns the frame of an if within f, which shares its names.
func (f *frame) branch() *frame {
	g := *f
	g.soft = true
	return &g
}

// copy returns a frame with copies of the names, to analyze one branch of an if.
func (f *frame) copy() *frame {
	g := *f
	g.vars, g.order, g.stores = map[string]*variable{}, slices.Clone(f.order), maps.Clone(f.stores)
	for name, v := range f.vars {
		c := *v
		g.vars[name] = &c
	}
	return &g
}

// find returns the frame that has a name.
func (f *frame) find(name string) (*frame, *variable) {
	for ; f != nil; f = f.parent {
		if v := f.vars[name]; v != nil {
			return f, v
		}
	}
	return nil, nil
}

func (f *frame) define(name string, act action, outer *frame) (slot int) {
	if f.vars[name] == nil {
		f.order = append(f.order, name)
	}
	v := &variable{action: act, outer: outer, slot: f.fn.slot(f.level, name)}
	f.vars[name] = v
	return v.slot
}

func (f *frame) declare(name string) (slot int) {
	f.stores[name] = true
	return f.define(name, actParam, nil)
}

func (f *frame) load(name string) {
	if owner, _ := f.find(name); owner == nil {
		f.define(name, actResolve, nil)
	}
}

func (f *frame) store(name string) {
	f.stores[name] = true
	if f.vars[name] != nil {
		return
	}
	if outer, _ := f.parent.find(name); outer != nil {
		f.define(name, actAlias, outer)
		return
	}
	f.define(name, actUndefined, nil)
}

// see collects the names of nodes in this frame.
func (f *frame) see(nodes ...node) {
	for _, n := range nodes {
		f.visit(n)
	}
}

// visit collects the names of a node, except for those in inner frames.
func (f *frame) visit(n node) {
	switch n := n.(type) {
	case *nameNode:
		switch n.mode {
		case param:
			f.declare(n.name)
		case store:
			f.store(n.name)
		default:
			f.load(n.name)
		}
	case *attrTarget:
		f.load(n.name)
	case *setNode:
		f.see(n.value, n.target)
	case *setBlockNode:
		f.visit(n.target)
	case *ifNode:
		f.visitIf(n)
	case *forNode:
		f.visit(n.iter)
	case *withNode:
		f.see(n.values...)
	case *macroNode:
		f.store(n.name)
	case *callBlockNode:
		if n.call != nil {
			f.visit(n.call)
		}
	case *filterBlockNode:
		f.visit(n.filter)
	case *blockNode, *scopeNode:
	case *unavailableNode:
		f.see(n.loads...)
		for _, name := range n.stores {
			f.store(name)
		}
	default:
		f.see(n.children()...)
	}
}

// visitIf visits the branches one by one. A name that only some branches set is initialized from the outer frame or the
// context.
func (f *frame) visitIf(n *ifNode) {
	f.visit(n.test)
	var branches []*frame
	var set []string
	for _, list := range [][]node{n.body, nodes(n.elifs), n.orElse} {
		g := f.copy()
		g.see(list...)
		branches = append(branches, g)
		for name := range g.stores {
			if !f.stores[name] {
				set = append(set, name)
			}
		}
	}
	for _, g := range branches {
		for _, name := range g.order {
			if f.vars[name] == nil {
				f.order = append(f.order, name)
			}
			f.vars[name] = g.vars[name]
		}
		maps.Copy(f.stores, g.stores)
	}
	for _, name := range set {
		v := f.vars[name]
		v.action, v.outer = actResolve, nil
		if outer, _ := f.parent.find(name); outer != nil {
			v.action, v.outer = actAlias, outer
		}
	}
}

// mentions reports which of some names are used before they are set, anywhere in nodes except in blocks.
func mentions(nodes []node, names ...string) map[string]bool {
	found, open := map[string]bool{}, map[string]bool{}
	for _, n := range names {
		open[n] = true
	}
	var visit func(n node)
	visit = func(n node) {
		switch n := n.(type) {
		case *nameNode:
			if n.mode == load && open[n.name] {
				found[n.name] = true
			} else {
				delete(open, n.name)
			}
			return
		case *blockNode:
			return
		}
		for _, c := range n.children() {
			visit(c)
		}
	}
	for _, n := range nodes {
		visit(n)
	}
	return found
}
