package compile

import (
	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// largestConstant is the size in bytes of what is computed at compile time and kept.
const largestConstant = 16 << 20

// fold computes what does not depend on parameters, as far as others read it.
//
//	before: y = Mul(x, Exp(Const))
//	after:  y = Mul(x, Const')
func (c *compiler) fold() error {
	if c.folding {
		return nil
	}
	wanted := c.constants()
	if len(wanted) == 0 {
		return nil
	}
	sub := newCompiler(ir.Graph{Name: c.source.Name, Outputs: wanted}, c.opts)
	sub.folding = true
	p, err := sub.compile()
	if err != nil {
		return err
	}
	data, err := c.opts.Evaluate(p)
	if err != nil {
		return err
	}
	for i, n := range wanted {
		c.values[n] = c.constant(n.Shape, data[i])
	}
	return nil
}

// constants returns the nodes that depend on constants only and that others read.
func (c *compiler) constants() (wanted []*ir.Node) {
	used := c.needed()
	fixed := map[*ir.Node]bool{}
	for _, n := range used {
		fixed[n] = n.Shape.Size()*n.Shape.DType.Size() <= largestConstant && n.Op != compute.OpTypeCall || ir.IsView(n.Op)
		for _, x := range n.In {
			fixed[n] = fixed[n] && fixed[x]
		}
	}
	seen := map[*ir.Node]bool{}
	want := func(n *ir.Node) {
		for ir.IsView(n.Op) {
			n = n.In[0]
		}
		if n.Op != compute.OpTypeConstant && !seen[n] {
			seen[n] = true
			wanted = append(wanted, n)
		}
	}
	for _, n := range used {
		for _, x := range n.In {
			if fixed[x] && !fixed[n] {
				want(x)
			}
		}
	}
	for _, n := range c.source.Outputs {
		if fixed[n] {
			want(n)
		}
	}
	return wanted
}
