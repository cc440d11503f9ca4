package compile

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// operand brings an operand of a matmul to matrices. It is copied when its axes cannot be walked with two strides.
func (c *compiler) operand(n *ir.Node, v ir.View, batch, contract []int) ir.Operand {
	var keep []int
	for i := range v.Dims {
		if !slices.Contains(batch, i) && !slices.Contains(contract, i) {
			keep = append(keep, i)
		}
	}
	v = v.Transpose(slices.Concat(batch, keep, contract))
	b, k := len(batch), len(batch)+len(keep)
	shape := []int{ir.Volume(v.Dims[b:k]), ir.Volume(v.Dims[k:])}
	m, ok := v.After(b).Reshape(shape)
	if !ok || slices.ContainsFunc(v.Strides, func(s int) bool { return s < 0 }) {
		v = c.copy(v, shapes.Make(v.Of.DType, v.Dims...), n.ID)
		m, _ = v.After(b).Reshape(shape)
	}
	return ir.Operand{View: v, Batch: v.Strides[:b], Rows: shape[0], Row: m.Strides[0], Inner: m.Strides[1]}
}

// matmul lowers a DotGeneral.
func (c *compiler) matmul(n *ir.Node, lhs, rhs ir.View) ir.View {
	at := n.Attr.(ir.MatmulAttr)
	a, b := c.operand(n, lhs, at.Batch[0], at.Contract[0]), c.operand(n, rhs, at.Batch[1], at.Contract[1])
	m := &ir.Matmul{A: a, B: b, Inner: 1, BF16: rhs.Of.DType == dtypes.BFloat16}
	m.ContractsRows = m.BF16 && at.Contract[1][0] == 0
	for _, i := range at.Contract[0] {
		m.Inner *= lhs.Dims[i]
	}
	count := 1
	m.Batch = make([]gemm.Axis, len(a.Batch))
	for i := len(a.Batch) - 1; i >= 0; i-- {
		m.Batch[i] = gemm.Axis{N: a.View.Dims[i], A: a.Batch[i], B: b.Batch[i], C: count * a.Rows * b.Rows}
		count *= a.View.Dims[i]
	}
	return c.single(n.ID, n.Shape, []ir.View{a.View, b.View}, func(out ir.View) ir.Step {
		m.Out = out
		return m
	})
}

// mayBePacked reports whether the right operand is a matrix that callers may pack.
func mayBePacked(m *ir.Matmul) bool {
	return m.B.View.Of.Memory == ir.InInput && len(m.B.View.Of.Dims) == 2
}
