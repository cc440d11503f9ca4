package jinja

import "slices"

// node is a statement or an expression of a parsed template, or a part of one.
type node interface {
	children() []node // in source order
}

// Statements and expressions compile themselves.
type (
	statementNode interface {
		compile(c *compiler, f *frame) stmt
	}
	expressionNode interface {
		compile(c *compiler, f *frame) expr
	}
)

// source is a parsed template.
type source struct {
	body     []node
	literals []string
	slices   bool // a literal is sliced
}

// mode is the use of a name: load or store.
type mode int

const (
	load mode = iota
	store
	param
)

// Expressions.
type (
	nameNode struct {
		name string
		mode mode
		line int
	}
	attrTarget struct { // "ns.x" on the left of an assignment
		name, attr string
		line       int
	}
	constNode struct{ value any }
	tupleNode struct{ items []node }
	listNode  struct{ items []node }
	dictNode  struct{ keys, values []node }
	unaryNode struct {
		op   string // "not", "-" or "+"
		x    node
		line int
	}
	binaryNode struct {
		op   string
		x, y node
		line int
	}
	concatNode  struct{ items []node }
	compareNode struct {
		x    node
		ops  []string
		ys   []node
		line int
	}
	conditionNode struct {
		test, yes, no node // no is nil without else
		line          int
	}
	getattrNode struct {
		x    node
		attr string
		line int
	}
	getitemNode struct {
		x, arg node
		line   int
	}
	sliceNode struct{ start, stop, step node } // nil if omitted
	callNode  struct {
		f    node
		args arguments
		line int
	}
	filterNode struct { // or a test
		x    node // nil for the text of a filter block or set block
		name string
		test bool
		args arguments
		line int
	}
	arguments struct {
		args     []node
		kwargs   []keyword
		dynArgs  node
		dynNamed node
	}
	keyword struct {
		name  string
		value node
	}
)

// Statements.
type (
	dataNode   struct{ text string }
	outputNode struct {
		items []node // expressions and data
		lines []int
	}
	setNode struct {
		target, value node
		line          int
	}
	setBlockNode struct {
		target node
		filter *filterNode // nil if there is none
		body   []node
		line   int
	}
	forNode struct {
		target, iter, test node // test is nil if there is none
		body, orElse       []node
		recursive          bool
		line               int
	}
	ifNode struct {
		test   node
		body   []node
		elifs  []*ifNode
		orElse []node
		line   int
	}
	withNode struct {
		targets, values []node
		body            []node
	}
	macroNode struct {
		name     string // "" for the body of a call block
		args     []*nameNode
		defaults []node
		body     []node
		line     int
	}
	callBlockNode struct {
		call  *callNode // nil for {% generation %}
		macro *macroNode
		line  int
	}
	filterBlockNode struct {
		filter *filterNode
		body   []node
		line   int
	}
	blockNode struct {
		name             string
		scoped, required bool
		body             []node
		line             int
	}
	scopeNode struct{ body []node } // {% autoescape %}
	jumpNode  struct {
		signal signal
		line   int
	}
	// unavailableNode is a statement that needs other templates, which is an error.
	unavailableNode struct {
		what   string
		stores []string // names that it would set
		loads  []node
		line   int
	}
)

func (*nameNode) children() []node        { return nil }
func (*attrTarget) children() []node      { return nil }
func (*constNode) children() []node       { return nil }
func (n *tupleNode) children() []node     { return n.items }
func (n *listNode) children() []node      { return n.items }
func (n *unaryNode) children() []node     { return []node{n.x} }
func (n *binaryNode) children() []node    { return []node{n.x, n.y} }
func (n *concatNode) children() []node    { return n.items }
func (n *compareNode) children() []node   { return append([]node{n.x}, n.ys...) }
func (n *conditionNode) children() []node { return present(n.test, n.yes, n.no) }
func (n *getattrNode) children() []node   { return []node{n.x} }
func (n *getitemNode) children() []node   { return []node{n.x, n.arg} }
func (n *sliceNode) children() []node     { return present(n.start, n.stop, n.step) }
func (n *callNode) children() []node      { return append([]node{n.f}, n.args.children()...) }
func (n *filterNode) children() []node    { return append(present(n.x), n.args.children()...) }

func (n *dictNode) children() []node {
	var out []node
	for i := range n.keys {
		out = append(out, n.keys[i], n.values[i])
	}
	return out
}

func (a *arguments) children() []node {
	out := slices.Clone(a.args)
	for _, k := range a.kwargs {
		out = append(out, k.value)
	}
	return append(out, present(a.dynArgs, a.dynNamed)...)
}

func (*dataNode) children() []node          { return nil }
func (n *outputNode) children() []node      { return n.items }
func (n *setNode) children() []node         { return []node{n.target, n.value} }
func (n *withNode) children() []node        { return slices.Concat(n.targets, n.values, n.body) }
func (n *filterBlockNode) children() []node { return append(slices.Clone(n.body), n.filter) }
func (n *blockNode) children() []node       { return n.body }
func (n *scopeNode) children() []node       { return n.body }
func (*jumpNode) children() []node          { return nil }
func (n *unavailableNode) children() []node { return n.loads }

func (n *setBlockNode) children() []node {
	out := []node{n.target}
	if n.filter != nil {
		out = append(out, n.filter)
	}
	return append(out, n.body...)
}

func (n *forNode) children() []node {
	return slices.Concat([]node{n.target, n.iter}, n.body, n.orElse, present(n.test))
}

func (n *ifNode) children() []node {
	return slices.Concat([]node{n.test}, n.body, nodes(n.elifs), n.orElse)
}

func (n *macroNode) children() []node { return slices.Concat(nodes(n.args), n.defaults, n.body) }

func (n *callBlockNode) children() []node {
	if n.call == nil {
		return n.macro.children()
	}
	return append([]node{n.call}, n.macro.children()...)
}

// present drops nil nodes.
func present(list ...node) []node {
	return slices.DeleteFunc(list, func(n node) bool { return n == nil })
}

// nodes converts nodes of one type.
func nodes[T node](list []T) []node {
	out := make([]node, len(list))
	for i, n := range list {
		out[i] = n
	}
	return out
}
