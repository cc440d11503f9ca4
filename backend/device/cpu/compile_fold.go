package cpu

import (
	"github.com/gomlx/compute"
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
	sub := newCompiler(source{name: c.source.name, outputs: wanted}, c.opts)
	sub.folding = true
	p, err := sub.compile()
	if err != nil {
		return err
	}
	data, err := c.opts.evaluate(p)
	if err != nil {
		return err
	}
	for i, n := range wanted {
		c.values[n] = c.constant(n.shape, data[i])
	}
	return nil
}

// constants returns the nodes that depend on constants only and that others read.
func (c *compiler) constants() (wanted []*node) {
	used := c.needed()
	fixed := map[*node]bool{}
	for _, n := range used {
		fixed[n] = n.shape.Size()*n.shape.DType.Size() <= largestConstant || isView(n.op)
		for _, x := range n.in {
			fixed[n] = fixed[n] && fixed[x]
		}
	}
	seen := map[*node]bool{}
	want := func(n *node) {
		for isView(n.op) {
			n = n.in[0]
		}
		if n.op != compute.OpTypeConstant && !seen[n] {
			seen[n] = true
			wanted = append(wanted, n)
		}
	}
	for _, n := range used {
		for _, x := range n.in {
			if fixed[x] && !fixed[n] {
				want(x)
			}
		}
	}
	for _, n := range c.source.outputs {
		if fixed[n] {
			want(n)
		}
	}
	return wanted
}
