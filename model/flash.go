package model

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

// HasFlashAttention reports whether a device has a kernel of causal attention in bfloat16 which keeps no scores, and one
// of its gradient (FlashAttention-2, Dao 2023; cuDNN's on GPUs of NVIDIA), for the heads of a model. Such a device has a
// method of this name that tells for which dimensions of a head.
func HasFlashAttention(device compute.Backend, c *Config) bool {
	f, ok := device.(interface{ FlashAttention(headDim int) bool })
	return ok && f.FlashAttention(c.HeadDim)
}

// flash reports whether a pass computes attention with a kernel of the device. It rounds queries, keys, weights and
// values to bfloat16, so it is for models whose matrices are rounded too.
func (f *Forward) flash(g *Graph) bool {
	return HasFlashAttention(g.Backend(), f.Config) &&
		f.Param(f.Config.Linears()[0].Name+weightSuffix).DType() != dtypes.Float32
}

// kernel builds the causal attention of queries [R, T, H, E], which it scales, to keys and values [R, K, T, E]:
// [R, T, H*E].
type kernel func(q *Node, all KV, scale float64) *Node

// hasKernel reports whether the kernel of a device computes the attention of a layer to some tokens.
func (p *part) hasKernel(d *design, l layer, tokens int) bool {
	return p.kernel != nil && d.scoreCap == 0 && (l.window == 0 || l.window >= tokens)
}

// attendFlash builds the causal attention of queries [R, T, H, E] to keys and values [R, K, T, E]: [R, T, H*E]. Where
// there is a GPU, internal/dev/bench/gpu compares it and its gradient with the CPU device.
func attendFlash(q *Node, all KV, scale float64) *Node {
	r, t, h, e := q.Shape().Dim(0), q.Shape().Dim(1), q.Shape().Dim(2), q.Shape().Dim(3)
	rounded := func(x *Node) *Node { return ConvertDType(x, dtypes.BFloat16) }
	q = rounded(TransposeAllAxes(q, 0, 2, 1, 3))
	y, _ := BackendFusedScaledDotProductAttention(q, rounded(all.K), rounded(all.V), compute.AttentionAxesLayoutBHSD,
		&compute.ScaledDotProductAttentionConfig{Scale: scale, Causal: true})
	y = TransposeAllAxes(ConvertDType(y, dtypes.Float32), 0, 2, 1, 3)
	return Reshape(y, r, t, h*e)
}
