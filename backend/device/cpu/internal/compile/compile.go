// Package compile makes a plan of a graph, in a list of passes that run in one order. See [Compile].
package compile

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// Options of a compilation.
type Options struct {
	Workers int  // that will run the plan
	Unfused bool // each operation is a step of its own, for tests
	// evaluate runs a plan without inputs and returns the memory of its outputs.
	Evaluate func(p *ir.Plan) ([]unsafe.Pointer, error)
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
	opts     Options
	source   ir.Graph
	folding  bool // constants are being computed
	plan     *ir.Plan
	values   map[*ir.Node]ir.View
	tensors  []*ir.Tensor
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

// Compile makes a plan of a graph.
func Compile(s ir.Graph, opts Options) (*ir.Plan, error) { return newCompiler(s, opts).compile() }

// newCompiler returns a compiler whose parameters have their tensors.
func newCompiler(s ir.Graph, opts Options) *compiler {
	c := &compiler{opts: opts, source: s, plan: &ir.Plan{Steps: []ir.Step{}}, values: map[*ir.Node]ir.View{}}
	for i, p := range s.Parameters {
		c.plan.Inputs = append(c.plan.Inputs, ir.Input{Name: p.Attr.(ir.ParameterAttr).Name, Shape: p.Shape})
		t := c.tensor(p.Shape)
		t.Memory, t.Index = ir.InInput, i
		c.values[p] = ir.Whole(t, p.Shape.Dimensions)
	}
	return c
}

// compile runs all passes. What panics on the way is an error.
func (c *compiler) compile() (p *ir.Plan, err error) {
	name := ""
	defer func() {
		if value := recover(); value != nil {
			p, err = nil, fmt.Errorf("cpu: compiling %q, pass %s: %v", c.source.Name, name, value)
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
func (c *compiler) needed() []*ir.Node {
	seen := map[*ir.Node]bool{}
	var visit func(n *ir.Node)
	var list []*ir.Node
	visit = func(n *ir.Node) {
		if seen[n] {
			return
		}
		seen[n] = true
		if _, ok := c.values[n]; ok {
			return
		}
		list = append(list, n)
		for _, x := range n.In {
			visit(x)
		}
	}
	for _, n := range c.source.Outputs {
		visit(n)
	}
	slices.SortFunc(list, func(a, b *ir.Node) int { return a.ID - b.ID })
	return list
}

// tensor adds a tensor.
func (c *compiler) tensor(s shapes.Shape) *ir.Tensor {
	t := &ir.Tensor{ID: len(c.tensors), DType: s.DType, Size: s.DType.Size(), Count: s.Size(), Dims: s.Dimensions}
	c.tensors, c.lives = append(c.tensors, t), append(c.lives, life{})
	return t
}

// constant adds a tensor that exists before a run.
func (c *compiler) constant(s shapes.Shape, data unsafe.Pointer) ir.View {
	t := c.tensor(s)
	t.Memory, t.Data = ir.InConstant, data
	return ir.Whole(t, s.Dimensions)
}

// scratch adds memory for float32 numbers that a unit uses while it runs.
func (c *compiler) scratch(u *unit, count int) *ir.Tensor {
	t := c.tensor(shapes.Make(dtypes.Float32, count))
	c.lives[t.ID] = life{writer: u, outside: true, first: u.position, last: u.position}
	return t
}

// writer returns the unit that was made to write a tensor, or nil.
func (c *compiler) writer(t *ir.Tensor) *unit { return c.lives[t.ID].writer }

// writes notes that a unit writes a tensor.
func (c *compiler) writes(u *unit, t *ir.Tensor) { c.lives[t.ID].writer = u }

// isOutside reports whether a tensor is read by something but its writer.
func (c *compiler) isOutside(t *ir.Tensor) bool { return c.lives[t.ID].outside }
