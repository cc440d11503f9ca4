package cpu

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
)

// operand brings an operand of a matmul to matrices. It is copied when its axes cannot be walked with two strides.
func (c *compiler) operand(n *node, v view, batch, contract []int) operand {
	var keep []int
	for i := range v.dims {
		if !slices.Contains(batch, i) && !slices.Contains(contract, i) {
			keep = append(keep, i)
		}
	}
	v = v.transpose(slices.Concat(batch, keep, contract))
	b, k := len(batch), len(batch)+len(keep)
	shape := []int{volume(v.dims[b:k]), volume(v.dims[k:])}
	m, ok := v.after(b).reshape(shape)
	if !ok || slices.ContainsFunc(v.strides, func(s int) bool { return s < 0 }) {
		v = c.copy(v, shapes.Make(v.of.kind, v.dims...), n.id)
		m, _ = v.after(b).reshape(shape)
	}
	return operand{v: v, batch: v.strides[:b], rows: shape[0], row: m.strides[0], inner: m.strides[1]}
}

// matmul lowers a DotGeneral.
func (c *compiler) matmul(n *node, lhs, rhs view) view {
	at := n.attr.(matmulAttr)
	a, b := c.operand(n, lhs, at.batch[0], at.contract[0]), c.operand(n, rhs, at.batch[1], at.contract[1])
	m := &matmul{a: a, b: b, inner: 1, bf16: rhs.of.kind == dtypes.BFloat16}
	m.contractsRows = m.bf16 && at.contract[1][0] == 0
	for _, i := range at.contract[0] {
		m.inner *= lhs.dims[i]
	}
	count := 1
	m.batch = make([]gemm.Axis, len(a.batch))
	for i := len(a.batch) - 1; i >= 0; i-- {
		m.batch[i] = gemm.Axis{N: a.v.dims[i], A: a.batch[i], B: b.batch[i], C: count * a.rows * b.rows}
		count *= a.v.dims[i]
	}
	return c.single(n.id, n.shape, []view{a.v, b.v}, func(out view) step {
		m.out = out
		return m
	})
}

// mayBePacked reports whether the right operand is a matrix that callers may pack.
func mayBePacked(m *matmul) bool { return m.b.v.of.memory == inInput && len(m.b.v.of.dims) == 2 }
