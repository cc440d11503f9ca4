package model

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
)

// Shape legend: see forward.go.

// selfAttention is grouped-query attention (Ainslie et al. 2023) with rotary embeddings; some models normalise queries
// and keys:
//
//	softmax(scale q kᵀ) v
//
// A cap bounds the scores (Bello et al. 2016; Gemma Team 2024): s becomes cap tanh(s / cap).
type selfAttention struct {
	// q has the rows of k and v behind its own where these are none.
	q, k, v, out linear
	// qNorm and kNorm are of each head, or of all heads together, by their size.
	qNorm, kNorm norm

	heads, kvHeads, size int     // size is of a head
	window               int     // tokens that a token attends to, itself included; 0 is no window
	rope                 rope    // without a base, positions change nothing but what is seen
	scale, cap           float64 // 0 is no cap
}

// selfAttention returns that of a layer: scores are divided by the root of the size of a head, all tokens are seen, and
// there are biases if configured.
func (c *Config) selfAttention() selfAttention {
	queries, keys := c.NumHeads*c.HeadDim, c.NumKVHeads*c.HeadDim
	of := func(name, file string, in, out int) linear {
		return linear{name: "self_attn." + name, file: file, in: in, out: out, bias: c.AttentionBias}
	}
	a := selfAttention{
		q: of("q_proj", "attn_q", c.HiddenSize, queries), k: of("k_proj", "attn_k", c.HiddenSize, keys),
		v: of("v_proj", "attn_v", c.HiddenSize, keys), out: of("o_proj", "attn_output", queries, c.HiddenSize),
		heads: c.NumHeads, kvHeads: c.NumKVHeads, size: c.HeadDim, rope: c.rope(), scale: 1 / math.Sqrt(float64(c.HeadDim)),
	}
	a.q.heads, a.k.heads, a.out.joins = c.NumHeads, c.NumKVHeads, true
	return a
}

// normalize sets norms of queries and keys: of each head, or of all together.
func (a *selfAttention) normalize(queries, keys int) {
	a.qNorm = norm{name: "self_attn.q_norm", file: "attn_q_norm", size: queries}
	a.kNorm = norm{name: "self_attn.k_norm", file: "attn_k_norm", size: keys}
}

func (a selfAttention) list(l *tensorList, at place) {
	for _, n := range []linear{a.q, a.k, a.v, a.out} {
		l.linear(at, n)
	}
	l.norm(at, a.qNorm)
	l.norm(at, a.kNorm)
}

// build applies the attention of a layer to x [B, T, D]. It also returns the keys and values that the pass ends with.
func (a selfAttention) build(f *Forward, pass *attention, x *Node, at string, cached *past) (*Node, KV) {
	b, t := x.Shape().Dim(0), x.Shape().Dim(1)
	project := a.projections(f, x, at)
	rotated := func(i, heads int, n norm) *Node {
		y := project(i)
		if n.name != "" {
			y = n.build(f, Reshape(y, b, t, -1, n.size), at)
		}
		y = Reshape(y, b, t, heads, a.size)
		if a.rope.theta == 0 {
			return y
		}
		return pass.rotation(a.rope).rotate(y)
	}
	q := rotated(0, a.heads, a.qNorm)
	fresh := KV{K: rotated(1, a.kvHeads, a.kNorm), V: Reshape(project(2), b, t, a.kvHeads, a.size)}
	var y *Node // [B, T, H*E]
	var next KV
	if len(pass.parts) > 1 {
		y = pass.join(a, q, fresh)
	} else {
		var all KV
		all, next = pass.remember(fresh, cached)
		y = pass.parts[0].attend(a, q, all, cached)
	}
	return a.out.build(f, y, at), next
}

// projections returns what builds the projections of x: 0 is that to queries, 1 to keys and 2 to values.
func (a selfAttention) projections(f *Forward, x *Node, at string) func(i int) *Node {
	if a.k.name != "" {
		return func(i int) *Node { return []linear{a.q, a.k, a.v}[i].build(f, x, at) }
	}
	all := a.q.build(f, x, at)
	queries, keys := a.heads*a.size, a.kvHeads*a.size
	return func(i int) *Node {
		return columns(all, []int{0, queries, queries + keys}[i], []int{queries, keys, keys}[i])
	}
}
