package compile

import (
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// sparsify makes matmuls over the rows of what fused attention with a mask made sparse.
//
//	before: p = attention{..., mask}; dv = matmul{pᵀ, dy}
//	after:  p = attention{..., mask}; dv = sparse matmul{pᵀ, dy}
func (c *compiler) sparsify() error {
	for _, u := range c.units {
		m, ok := u.step.(*ir.Matmul)
		if !ok || u.into != nil || m.Out.Of.DType != dtypes.Float32 || mayBePacked(m) {
			continue // it reads rows of the right operand where they are, which packed matrices have none of
		}
		switch {
		case c.masked(m.A):
			u.step = &ir.SparseMatmul{Matmul: m}
		case c.masked(m.B):
			u.step = &ir.SparseMatmul{Matmul: m, Right: true}
		}
	}
	return nil
}

// masked reports whether an operand is what fused attention with a mask made, and the contracted axis goes through its
// rows.
func (c *compiler) masked(x ir.Operand) bool {
	w := c.writer(x.View.Of)
	if w == nil || x.Row != 1 {
		return false
	}
	k := w.root().attention
	return k != nil && k.Mask != nil && x.Inner == k.Width
}
