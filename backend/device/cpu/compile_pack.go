package cpu

import "slices"

// markPackable marks the parameters that may be packed: all steps that read them can do so.
//
//	before: w is read by a gather of rows and as the right operand of a matmul
//	after:  w may be packed
func (c *compiler) markPackable() error {
	inputs := c.plan.inputs
	for i := range inputs {
		inputs[i].packable = packs(inputs[i].shape)
	}
	for _, u := range c.order {
		for _, v := range u.reads {
			if v.of.memory == inInput && inputs[v.of.index].packable && !readsPacked(u.step, v) {
				inputs[v.of.index].packable = false
			}
		}
	}
	return nil
}

// readsPacked reports whether v, which a step reads, may be a packed matrix.
func readsPacked(s step, v view) bool {
	switch s := s.(type) {
	case *matmul:
		return multipliesPacked(s, v)
	case *sparseMatmul:
		return multipliesPacked(s.matmul, v)
	case *gatherStep:
		return v.of == s.operand.of && v.of != s.index.indices.of && len(v.dims) == 2 && v.off == 0 &&
			slices.Equal(v.dims, v.of.dims) && slices.Equal(v.strides, rowMajor(v.dims)) && s.rows
	case *attention:
		if slices.ContainsFunc(s.others, func(o view) bool { return o.of == v.of }) {
			return false
		}
		first := s.first.a.v.of == v.of || s.first.b.v.of == v.of
		second := s.second != nil && s.second.b.v.of == v.of
		return (!first || multipliesPacked(s.first, s.first.b.v)) && (!second || multipliesPacked(s.second, s.second.b.v))
	}
	return false
}

// multipliesPacked reports whether a [rows, columns] matrix is the right operand of a matmul, and its columns or its rows
// are contracted.
func multipliesPacked(m *matmul, v view) bool {
	if len(m.batch) > 0 || v.of != m.b.v.of || v.of == m.a.v.of || v.off != 0 {
		return false
	}
	rows, columns := v.of.dims[0], v.of.dims[1]
	return m.b.rows == rows && m.inner == columns && m.b.row == columns && m.b.inner == 1 ||
		m.b.rows == columns && m.inner == rows && m.b.row == 1 && m.b.inner == columns
}
