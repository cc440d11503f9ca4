package cpu

import "github.com/gomlx/compute/dtypes"

// sparsify makes matmuls over the rows of what fused attention with a mask made sparse.
//
//	before: p = attention{..., mask}; dv = matmul{pᵀ, dy}
//	after:  p = attention{..., mask}; dv = sparse matmul{pᵀ, dy}
func (c *compiler) sparsify() error {
	for _, u := range c.units {
		m, ok := u.step.(*matmul)
		if !ok || u.into != nil || m.out.of.kind != dtypes.Float32 || mayBePacked(m) {
			continue // it reads rows of the right operand where they are, which packed matrices have none of
		}
		switch {
		case c.masked(m.a):
			u.step = &sparseMatmul{m, false}
		case c.masked(m.b):
			u.step = &sparseMatmul{m, true}
		}
	}
	return nil
}

// masked reports whether an operand is what fused attention with a mask made, and the contracted axis goes through its rows.
func (c *compiler) masked(x operand) bool {
	w := c.writer(x.v.of)
	if w == nil || x.row != 1 {
		return false
	}
	k := w.root().attention
	return k != nil && k.mask != nil && x.inner == k.width
}
