package compile

import (
	"slices"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// swapOperands lets matmuls that are only read as transposed outputs, as gradients of weights are, swap their operands:
// what they write is the output then. A multiply-add is the same either way.
//
//	before: y = matmul{a, b}; output Transpose(y), which takes a copy
//	after:  output matmul{bᵀ, aᵀ}
func (c *compiler) swapOperands() error {
	readers, uses := c.readers(), map[*ir.Tensor]int{}
	for _, n := range c.source.Outputs {
		uses[c.values[n].Of]++
	}
	for _, n := range c.source.Outputs {
		v := c.values[n]
		t := v.Of
		if c.writer(t) == nil || uses[t] > 1 || len(readers[t]) > 0 {
			continue
		}
		if m, ok := c.writer(t).step.(*ir.Matmul); ok && swaps(m, v) {
			m.A, m.B = m.B, m.A
			m.Out = ir.Whole(t, []int{m.A.Rows, m.B.Rows})
			c.values[n] = ir.Whole(t, v.Dims)
		}
	}
	return nil
}

// swaps reports whether v is the transposed result, and each operand may be the other.
func swaps(m *ir.Matmul, v ir.View) bool {
	c := v.Collapse()
	return len(m.Batch) == 0 && !m.BF16 && !mayBePacked(m) && c.Off == 0 &&
		slices.Equal(c.Dims, []int{m.B.Rows, m.A.Rows}) && slices.Equal(c.Strides, []int{1, m.B.Rows})
}

// bindOutputs makes each output a tensor of its own. What is a view of something else is copied.
//
//	before: output Slice(y)
//	after:  z = copy{view of y}; output z
func (c *compiler) bindOutputs() error {
	for i, n := range c.source.Outputs {
		v := c.values[n]
		if v.Of.Memory != ir.InArena || v.Off != 0 || v.Of.Count != n.Shape.Size() || !v.Contiguous() {
			v = c.copy(v, n.Shape, n.ID)
		}
		v.Of.Memory, v.Of.Index = ir.InOutput, i
		c.lives[v.Of.ID].outside = true
		c.plan.Outputs = append(c.plan.Outputs, ir.Output{Shape: n.Shape, Of: v.Of, Donor: -1})
	}
	return nil
}
