package cpu

import "slices"

// swapOperands lets matmuls that are only read as transposed outputs, as gradients of weights are, swap their operands: what
// they write is the output then. A multiply-add is the same either way.
//
//	before: y = matmul{a, b}; output Transpose(y), which takes a copy
//	after:  output matmul{bᵀ, aᵀ}
func (c *compiler) swapOperands() error {
	readers, uses := c.readers(), map[*tensor]int{}
	for _, n := range c.source.outputs {
		uses[c.values[n].of]++
	}
	for _, n := range c.source.outputs {
		v := c.values[n]
		t := v.of
		if c.writer(t) == nil || uses[t] > 1 || len(readers[t]) > 0 {
			continue
		}
		if m, ok := c.writer(t).step.(*matmul); ok && swaps(m, v) {
			m.a, m.b = m.b, m.a
			m.out = whole(t, []int{m.a.rows, m.b.rows})
			c.values[n] = whole(t, v.dims)
		}
	}
	return nil
}

// swaps reports whether v is the transposed result, and each operand may be the other.
func swaps(m *matmul, v view) bool {
	c := v.collapse()
	return len(m.batch) == 0 && !m.bf16 && !mayBePacked(m) && c.off == 0 &&
		slices.Equal(c.dims, []int{m.b.rows, m.a.rows}) && slices.Equal(c.strides, []int{1, m.b.rows})
}

// bindOutputs makes each output a tensor of its own. What is a view of something else is copied.
//
//	before: output Slice(y)
//	after:  z = copy{view of y}; output z
func (c *compiler) bindOutputs() error {
	for i, n := range c.source.outputs {
		v := c.values[n]
		if v.of.memory != inArena || v.off != 0 || v.of.count != n.shape.Size() || !v.contiguous() {
			v = c.copy(v, n.shape, n.id)
		}
		v.of.memory, v.of.index = inOutput, i
		c.lives[v.of.id].outside = true
		c.plan.outputs = append(c.plan.outputs, output{shape: n.shape, of: v.of, donor: -1})
	}
	return nil
}
