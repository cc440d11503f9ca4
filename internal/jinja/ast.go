package jinja

// node is a statement or an expression of a parsed template.
type node interface{}

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
	filterNode struct {
		x    node // nil for the text of a filter block or set block
		name string
		args arguments
		line int
	}
	testNode struct {
		x    node
		name string
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

// children returns the children of n, in source order.
func children(n node) []node {
	switch n := n.(type) {
	case *tupleNode:
		return n.items
	case *listNode:
		return n.items
	case *dictNode:
		var out []node
		for i := range n.keys {
			out = append(out, n.keys[i], n.values[i])
		}
		return out
	case *unaryNode:
		return []node{n.x}
	case *binaryNode:
		return []node{n.x, n.y}
	case *concatNode:
		return n.items
	case *compareNode:
		return append([]node{n.x}, n.ys...)
	case *conditionNode:
		return present(n.test, n.yes, n.no)
	case *getattrNode:
		return []node{n.x}
	case *getitemNode:
		return []node{n.x, n.arg}
	case *sliceNode:
		return present(n.start, n.stop, n.step)
	case *callNode:
		return append([]node{n.f}, n.args.children()...)
	case *filterNode:
		return append(present(n.x), n.args.children()...)
	case *testNode:
		return append([]node{n.x}, n.args.children()...)
	}
	return statementChildren(n)
}

func statementChildren(n node) []node {
	switch n := n.(type) {
	case *outputNode:
		return n.items
	case *setNode:
		return []node{n.target, n.value}
	case *setBlockNode:
		out := []node{n.target}
		if n.filter != nil {
			out = append(out, n.filter)
		}
		return append(out, n.body...)
	case *forNode:
		out := present(n.target, n.iter)
		out = append(append(out, n.body...), n.orElse...)
		return append(out, present(n.test)...)
	case *ifNode:
		out := append([]node{n.test}, n.body...)
		for _, e := range n.elifs {
			out = append(out, e)
		}
		return append(out, n.orElse...)
	case *withNode:
		return append(append(append([]node(nil), n.targets...), n.values...), n.body...)
	case *macroNode:
		return n.children()
	case *callBlockNode:
		var out []node
		if n.call != nil {
			out = append(out, n.call)
		}
		return append(out, n.macro.children()...)
	case *filterBlockNode:
		return append(append([]node(nil), n.body...), n.filter)
	case *blockNode:
		return n.body
	case *scopeNode:
		return n.body
	case *unavailableNode:
		return n.loads
	}
	return nil
}

func (n *macroNode) children() []node {
	var out []node
	for _, a := range n.args {
		out = append(out, a)
	}
	return append(append(out, n.defaults...), n.body...)
}

func (a *arguments) children() []node {
	out := append([]node(nil), a.args...)
	for _, k := range a.kwargs {
		out = append(out, k.value)
	}
	return append(out, present(a.dynArgs, a.dynNamed)...)
}

// present drops nil nodes.
func present(nodes ...node) []node {
	var out []node
	for _, n := range nodes {
		if n != nil {
			out = append(out, n)
		}
	}
	return out
}
