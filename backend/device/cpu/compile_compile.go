package cpu

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// compileOptions of a compilation.
type compileOptions struct {
	workers int  // that will run the plan
	unfused bool // each operation is a step of its own, for tests
	// evaluate runs a plan without inputs and returns the memory of its outputs.
	evaluate func(p *plan) ([]unsafe.Pointer, error)
}

// pass is a stage of the compilation.
type pass struct {
	name string
	run  func(c *compiler) error
}

// passes are the stages of a compilation, in their order. The comment of each function shows what it makes of what.
func passes() []pass {
	return []pass{
		{"fold", (*compiler).fold},
		{"fuse", (*compiler).fuse},
		{"swap", (*compiler).swapOperands},
		{"output", (*compiler).bindOutputs},
		{"sink", (*compiler).sink},
		{"attention", (*compiler).fuseAttention},
		{"sparse", (*compiler).sparsify},
		{"schedule", (*compiler).schedule},
		{"generate", (*compiler).generate},
		{"donate", (*compiler).donate},
		{"pack", (*compiler).markPackable},
		{"allocate", (*compiler).allocate},
	}
}

// compiler is the state of a compilation: the graph, the units that will be steps, and the plan that comes of them.
type compiler struct {
	opts     compileOptions
	source   source
	folding  bool // constants are being computed
	plan     *plan
	values   map[*node]view
	tensors  []*tensor
	lives    []life  // of each tensor
	units    []*unit // in the order in which they were made
	sorted   []*unit // each behind those that it waits for
	order    []*unit // of the steps
	searches int
}

// life is what the compiler knows of a tensor besides the plan.
type life struct {
	writer      *unit // nil for inputs and constants
	outside     bool  // something but its writer reads it
	first, last int   // steps at which it is written, and read last
}

// compile makes a plan of a graph.
func compile(s source, opts compileOptions) (*plan, error) { return newCompiler(s, opts).compile() }

// newCompiler returns a compiler whose parameters have their tensors.
func newCompiler(s source, opts compileOptions) *compiler {
	c := &compiler{opts: opts, source: s, plan: &plan{steps: []step{}}, values: map[*node]view{}}
	for i, p := range s.parameters {
		c.plan.inputs = append(c.plan.inputs, input{name: p.attr.(parameterAttr).name, shape: p.shape})
		t := c.tensor(p.shape)
		t.memory, t.index = inInput, i
		c.values[p] = whole(t, p.shape.Dimensions)
	}
	return c
}

// compile runs all passes. What panics on the way is an error.
func (c *compiler) compile() (p *plan, err error) {
	name := ""
	defer func() {
		if value := recover(); value != nil {
			p, err = nil, fmt.Errorf("cpu: compiling %q, pass %s: %v", c.source.name, name, value)
		}
	}()
	for _, pass := range passes() {
		name = pass.name
		if err := pass.run(c); err != nil {
			return nil, err
		}
	}
	return c.plan, nil
}

// needed returns the nodes that the outputs depend on, in their order, up to those that have a value.
func (c *compiler) needed() []*node {
	seen := map[*node]bool{}
	var visit func(n *node)
	var list []*node
	visit = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if _, ok := c.values[n]; ok {
			return
		}
		list = append(list, n)
		for _, x := range n.in {
			visit(x)
		}
	}
	for _, n := range c.source.outputs {
		visit(n)
	}
	slices.SortFunc(list, func(a, b *node) int { return a.id - b.id })
	return list
}

// tensor adds a tensor.
func (c *compiler) tensor(s shapes.Shape) *tensor {
	t := &tensor{id: len(c.tensors), kind: s.DType, size: s.DType.Size(), count: s.Size(), dims: s.Dimensions}
	c.tensors, c.lives = append(c.tensors, t), append(c.lives, life{})
	return t
}

// constant adds a tensor that exists before a run.
func (c *compiler) constant(s shapes.Shape, data unsafe.Pointer) view {
	t := c.tensor(s)
	t.memory, t.data = inConstant, data
	return whole(t, s.Dimensions)
}

// scratch adds memory for float32 numbers that a unit uses while it runs.
func (c *compiler) scratch(u *unit, count int) *tensor {
	t := c.tensor(shapes.Make(dtypes.Float32, count))
	c.lives[t.id] = life{writer: u, outside: true, first: u.position, last: u.position}
	return t
}

// writer returns the unit that was made to write a tensor, or nil.
func (c *compiler) writer(t *tensor) *unit { return c.lives[t.id].writer }

// writes notes that a unit writes a tensor.
func (c *compiler) writes(u *unit, t *tensor) { c.lives[t.id].writer = u }

// isOutside reports whether a tensor is read by something but its writer.
func (c *compiler) isOutside(t *tensor) bool { return c.lives[t.id].outside }
