package model

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	. "github.com/goart-dev/art/internal/graphx"
)

// Shape legend: B batch, T new tokens, S cached tokens, D hidden, H query heads, K key/value heads, G = H/K, E head
// dimension, V vocabulary, N selected tokens.

// Linear is called for every linear layer inside the blocks: x is [..., in], base computes the layer as the base model
// has it, and the result takes base's place. name is "model.layers.0.self_attn.q_proj". nil is base alone.
type Linear func(x *Node, name string, base func(*Node) *Node) *Node

// Forward builds the graph of a model.
type Forward struct {
	Config *Config
	// Param returns a weight by its checkpoint name, in the shape of the checkpoint, or nil.
	Param  func(name string) *Node
	Linear Linear
}

// Input is what a forward pass reads.
type Input struct {
	// Tokens is [B, T] int32. Rows are padded on the right with any token: later tokens are invisible to earlier ones.
	Tokens *Node
	// Start is [B] int32, the number of cached tokens of each row, which is the position of its first new token. It is
	// nil without a cache.
	Start *Node
	// Cache holds the keys and values of earlier tokens, one for each layer, at their positions. From Start on it is zero.
	Cache []KV
}

// KV is the cache of one layer: keys [B, K, E, S], already rotated, and values [B, K, S, E].
//
// Keys lie transposed so that scores and values are products of the same layout as the linear layers.
type KV struct{ K, V *Node }

// Hidden builds the blocks and the final norm. It returns [B, T, D] and the keys and values of the new tokens,
// [B, K, E, T] and [B, K, T, E].
func (f *Forward) Hidden(in Input) (*Node, []KV) {
	in.Tokens.AssertRank(2)
	x := Gather(f.Param(embedName), ExpandAxes(in.Tokens, -1)) // [B, T, D]
	a := f.attention(in)
	fresh := make([]KV, f.Config.NumLayers)
	for l := range f.Config.NumLayers {
		p := layerName(l)
		h := f.norm(x, p+"input_layernorm.weight")
		var cached *KV
		if in.Cache != nil {
			cached = &in.Cache[l]
		}
		h, fresh[l] = a.build(f, h, p+"self_attn.", cached)
		x = Add(x, h)
		x = Add(x, f.mlp(f.norm(x, p+"post_attention_layernorm.weight"), p+"mlp."))
	}
	return f.norm(x, normName), fresh
}

// LogProbs builds the log-softmax over the vocabulary of hidden states [N, D]: [N, V].
//
//	logprob = z - max(z) - log(sum(exp(z - max(z))))
func (f *Forward) LogProbs(hidden *Node) *Node {
	hidden.AssertDims(-1, f.Config.HiddenSize)
	return logSoftmax(f.Logits(hidden))
}

// Logits builds the output head over hidden states [N, D]: [N, V].
func (f *Forward) Logits(hidden *Node) *Node {
	if f.Config.TieEmbeddings {
		return ProductT(hidden, f.Param(embedName))
	}
	return ProductT(hidden, f.Param(headName))
}

// norm is RMSNorm (Zhang and Sennrich 2019): x / sqrt(mean(x²) + eps) * w.
func (f *Forward) norm(x *Node, name string) *Node {
	w := f.Param(name)
	n := float64(x.Shape().Dim(-1))
	scale := Sqrt(AddScalar(MulScalar(ReduceAndKeep(Mul(x, x), ReduceSum, -1), 1/n), f.Config.RMSNormEps))
	return Mul(Div(x, scale), ExpandLeftToRank(w, x.Rank()))
}

// mlp is SwiGLU (Shazeer 2020): down(silu(gate(x)) * up(x)).
func (f *Forward) mlp(x *Node, p string) *Node {
	gate := f.linear(x, p+"gate_proj")
	up := f.linear(x, p+"up_proj")
	return f.linear(Mul(silu(gate), up), p+"down_proj")
}

// linear applies the layer to x [B, T, in]. Rows are flattened first: a product of two matrices is what devices do best.
func (f *Forward) linear(x *Node, name string) *Node {
	b, t := x.Shape().Dim(0), x.Shape().Dim(1)
	base := func(x *Node) *Node { return ProductT(x, f.Param(name+".weight")) }
	x = Reshape(x, b*t, -1)
	y := base
	if f.Linear != nil {
		y = func(x *Node) *Node { return f.Linear(x, name, base) }
	}
	return Reshape(y(x), b, t, -1)
}

// attention is what all layers share: rotations, the mask, and where new tokens go.
//
// Keys stand at their positions, in the cache and without one: sums over keys then have the same order in every pass.
type attention struct {
	cos, sin *Node // [B or 1, T, 1, E/2]
	mask     *Node // [B or 1, 1, 1, T, S] bool
	place    *Node // [B, T, S]: 1 where S is the position of new token T, else 0; nil without a cache
}

func (f *Forward) attention(in Input) *attention {
	b, t := in.Tokens.Shape().Dim(0), in.Tokens.Shape().Dim(1)
	g := in.Tokens.Graph()
	if in.Start == nil {
		cos, sin := f.Config.ropeTables(t)
		rows := func(table *tensors.Tensor) *Node { return Reshape(ConstTensor(g, table), 1, t, 1, -1) }
		causal := LessOrEqual(Iota(g, shapeI32(t, t), 1), Iota(g, shapeI32(t, t), 0))
		return &attention{cos: rows(cos), sin: rows(sin), mask: Reshape(causal, 1, 1, 1, t, t)}
	}
	in.Start.AssertDims(b)
	s := in.Cache[0].K.Shape().Dim(-1)
	cos, sin := f.Config.ropeTables(s)
	position := Add(BroadcastToDims(Reshape(in.Start, b, 1), b, t), Iota(g, shapeI32(b, t), 1)) // [B, T]
	rows := func(table *tensors.Tensor) *Node {
		known := MinScalar(position, int32(s-1)) // padding may lie beyond
		return Reshape(Gather(ConstTensor(g, table), ExpandAxes(known, -1)), b, t, 1, -1)
	}
	query := BroadcastToDims(Reshape(position, b, t, 1), b, t, s)
	key := Iota(g, shapeI32(b, t, s), 2)
	return &attention{
		cos: rows(cos), sin: rows(sin),
		mask:  Reshape(LessOrEqual(key, query), b, 1, 1, t, s),
		place: ConvertDType(Equal(key, query), f.Param(normName).DType()),
	}
}

// gather returns all keys and values: the cached ones, and the new ones at their positions.
func (a *attention) gather(cached *KV, fresh KV) KV {
	if cached == nil {
		return fresh
	}
	b, k, e, t := fresh.K.Shape().Dim(0), fresh.K.Shape().Dim(1), fresh.K.Shape().Dim(2), fresh.K.Shape().Dim(3)
	s := a.place.Shape().Dim(-1)
	keys := Product(Reshape(fresh.K, b, k*e, t), a.place) // [B, K*E, S]
	rows := BroadcastToDims(Reshape(TransposeAllAxes(a.place, 0, 2, 1), b, 1, s, t), b, k, s, t)
	return KV{
		K: Add(cached.K, Reshape(keys, b, k, e, s)),
		V: Add(cached.V, Product(rows, fresh.V)), // [B, K, S, E]
	}
}

// build is grouped-query attention (Ainslie et al. 2023) with normalised, rotated queries and keys:
//
//	softmax(q kᵀ / sqrt(E)) v
func (a *attention) build(f *Forward, x *Node, p string, cached *KV) (*Node, KV) {
	c := f.Config
	b, t := x.Shape().Dim(0), x.Shape().Dim(1)
	k, e := c.NumKVHeads, c.HeadDim
	g := c.NumHeads / k
	split := func(name string, heads int) *Node { return Reshape(f.linear(x, p+name), b, t, heads, e) }

	q := a.rotate(f.norm(split("q_proj", k*g), p+"q_norm.weight"))
	key := a.rotate(f.norm(split("k_proj", k), p+"k_norm.weight"))
	fresh := KV{
		K: TransposeAllAxes(key, 0, 2, 3, 1),                // [B, K, E, T]
		V: TransposeAllAxes(split("v_proj", k), 0, 2, 1, 3), // [B, K, T, E]
	}
	all := a.gather(cached, fresh)
	s := all.K.Shape().Dim(-1)
	q = TransposeAllAxes(Reshape(q, b, t, k, g, e), 0, 2, 3, 1, 4) // [B, K, G, T, E]
	q = MulScalar(Reshape(q, b, k, g*t, e), 1/math.Sqrt(float64(e)))

	scores := Reshape(Product(q, all.K), b, k, g, t, s)
	scores = Where(BroadcastToDims(a.mask, b, k, g, t, s), scores, Scalar(x.Graph(), x.DType(), masked))
	y := Product(Reshape(softmax(scores), b, k, g*t, s), all.V)    // [B, K, G*T, E]
	y = TransposeAllAxes(Reshape(y, b, k, g, t, e), 0, 3, 1, 2, 4) // [B, T, K, G, E]
	return f.linear(Reshape(y, b, t, k*g*e), p+"o_proj"), fresh
}

// masked stands for minus infinity: its exponential is exactly zero, and it has no NaN in its gradient.
const masked = -1e30

// rotate is RoPE (Su et al. 2021) in the half-split form: with x = [x1, x2],
//
//	[x1 cos - x2 sin, x2 cos + x1 sin]
func (a *attention) rotate(x *Node) *Node {
	half := x.Shape().Dim(-1) / 2
	x1 := SliceAxis(x, -1, AxisRange(0, half))
	x2 := SliceAxis(x, -1, AxisRange(half))
	return Concatenate([]*Node{
		Sub(Mul(x1, a.cos), Mul(x2, a.sin)),
		Add(Mul(x2, a.cos), Mul(x1, a.sin)),
	}, -1)
}
