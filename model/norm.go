package model

import . "github.com/gomlx/gomlx/core/graph"

// norm is RMSNorm over the last axis (Zhang and Sennrich 2019):
//
//	x / sqrt(mean(x²) + eps) (offset + w)
//
// The zero value is no norm.
type norm struct {
	name, file string // within a layer: "input_layernorm", and llama.cpp's "attn_norm"
	size       int
	offset     float64 // 1 in Gemma's, whose weights are around 0
}

// build applies the norm to x [..., size]. at precedes its name.
func (n norm) build(f *Forward, x *Node, at string) *Node {
	if n.name == "" {
		return x
	}
	w := f.Param(at + n.name + weightSuffix)
	if n.offset != 0 {
		w = AddScalar(w, n.offset)
	}
	mean := MulScalar(ReduceAndKeep(Mul(x, x), ReduceSum, -1), 1/float64(n.size))
	return Mul(Div(x, Sqrt(AddScalar(mean, f.Config.RMSNormEps))), ExpandLeftToRank(w, x.Rank()))
}

// residual is how a part of a layer is joined to the residual stream:
//
//	x + scale after(part(before(x)))
type residual struct {
	before, after norm
	scale         float64
}

func (r residual) build(f *Forward, x *Node, at string, part func(x *Node) *Node) *Node {
	return Add(x, scaled(r.after.build(f, part(r.before.build(f, x, at)), at), r.scale))
}

func scaled(x *Node, by float64) *Node {
	if by == 1 {
		return x
	}
	return MulScalar(x, by)
}
