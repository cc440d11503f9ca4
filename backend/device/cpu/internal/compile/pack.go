package compile

import (
	"slices"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// markPackable marks the parameters that may be packed: all steps that read them can do so.
//
//	before: w is read by a gather of rows and as the right operand of a matmul
//	after:  w may be packed
func (c *compiler) markPackable() error {
	inputs := c.plan.Inputs
	for i := range inputs {
		inputs[i].Packable = ir.CanPack(inputs[i].Shape)
	}
	for _, u := range c.order {
		for _, v := range u.reads {
			if v.Of.Memory == ir.InInput && inputs[v.Of.Index].Packable && !readsPacked(u.step, v) {
				inputs[v.Of.Index].Packable = false
			}
		}
	}
	return nil
}

// readsPacked reports whether v, which a step reads, may be a packed matrix.
func readsPacked(s ir.Step, v ir.View) bool {
	switch s := s.(type) {
	case *ir.Matmul:
		return multipliesPacked(s, v)
	case *ir.SparseMatmul:
		return multipliesPacked(s.Matmul, v)
	case *ir.Gather:
		return v.Of == s.Operand.Of && v.Of != s.Index.Indices.Of && isMatrix(v) && s.Rows
	case *ir.Grouped:
		return v.Of != s.X.View.Of && v.Of != s.IDs.View.Of && isMatrix(v)
	case *ir.Attention:
		if slices.ContainsFunc(s.Others, func(o ir.View) bool { return o.Of == v.Of }) {
			return false
		}
		first := s.First.A.View.Of == v.Of || s.First.B.View.Of == v.Of
		second := s.Second != nil && s.Second.B.View.Of == v.Of
		return (!first || multipliesPacked(s.First, s.First.B.View)) &&
			(!second || multipliesPacked(s.Second, s.Second.B.View))
	}
	return false
}

// isMatrix reports whether v is all of a matrix, as it is.
func isMatrix(v ir.View) bool {
	return len(v.Dims) == 2 && v.Off == 0 && slices.Equal(v.Dims, v.Of.Dims) &&
		slices.Equal(v.Strides, ir.RowMajor(v.Dims))
}

// multipliesPacked reports whether a [rows, columns] matrix is the right operand of a matmul, and its columns or its
// rows are contracted.
func multipliesPacked(m *ir.Matmul, v ir.View) bool {
	if len(m.Batch) > 0 || v.Of != m.B.View.Of || v.Of == m.A.View.Of || v.Off != 0 {
		return false
	}
	rows, columns := v.Of.Dims[0], v.Of.Dims[1]
	return m.B.Rows == rows && m.Inner == columns && m.B.Row == columns && m.B.Inner == 1 ||
		m.B.Rows == columns && m.Inner == rows && m.B.Row == 1 && m.B.Inner == columns
}
