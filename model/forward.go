package model

import (
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
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
	// Frozen says that the output head is not trained.
	Frozen bool
}

// Input is what a forward pass reads.
type Input struct {
	// Tokens is [B, T] int32. Rows are padded on the right with any token: later tokens are invisible to earlier ones.
	Tokens *Node
	// Cache is nil for a pass that begins with the first token and keeps nothing.
	Cache *Cache
}

// Cache is what a pass knows of earlier tokens.
type Cache struct {
	// Start is [B] int32: the number of cached tokens of each row, which is the position of its first new token.
	Start *Node
	// Count is [B] int32: the number of new tokens of each row that are not padding. Start + Count is at most S.
	Count *Node
	// Slots is [B] int32: the sequence of the cache that each row of tokens continues. Rows that are all padding may name any;
	// no other two may name the same. nil is each row its own: B is W, and the cache is read where it lies.
	Slots *Node
	// Layers are the keys and values of each layer. Behind the cached tokens they are zero.
	Layers []KV
}

// KV is the cache of one layer: keys, already rotated, and values, both [W, K, S, E], of the tokens of W sequences at their
// positions.
type KV struct{ K, V *Node }

// Hidden builds the blocks and the final norm. It returns [B, T, D], and the cache with the new tokens, if there is one. The
// caller may donate the old one: a device then writes the new tokens into it.
func (f *Forward) Hidden(in Input) (*Node, []KV) {
	in.Tokens.AssertRank(2)
	x := Gather(f.Param(embedName), ExpandAxes(in.Tokens, -1)) // [B, T, D]
	a := f.attention(in)
	var cached []KV
	for l := range f.Config.NumLayers {
		p := layerName(l)
		h := f.norm(x, p+"input_layernorm.weight")
		if in.Cache != nil {
			var kv KV
			h, kv = a.build(f, h, p+"self_attn.", &in.Cache.Layers[l])
			cached = append(cached, kv)
		} else {
			h, _ = a.build(f, h, p+"self_attn.", nil)
		}
		x = Add(x, h)
		x = Add(x, f.mlp(f.norm(x, p+"post_attention_layernorm.weight"), p+"mlp."))
	}
	return f.norm(x, normName), cached
}

// LogProbs builds the log-softmax over the vocabulary of hidden states [N, D]: [N, V].
//
//	logprob = z - max(z) - log(sum(exp(z - max(z))))
func (f *Forward) LogProbs(hidden *Node) *Node {
	hidden.AssertDims(-1, f.Config.HiddenSize)
	return logSoftmax(f.Logits(hidden))
}

// TokenLogProbs builds the logprobs [N] of the tokens target [N, 1], int32, after hidden states [N, D]: what LogProbs holds
// of them, bit for bit.
//
// With a frozen head no [N, V] need ever be there. With z the logits, p their softmax and W the head, the gradient to the
// hidden state is
//
//	d logprob / dh = W[target] - p W
//
// which is computed with the logprob, while the logits are at hand.
func (f *Forward) TokenLogProbs(hidden, target *Node) *Node {
	n := hidden.Shape().Dim(0)
	target.AssertDims(n, 1)
	dims := []int{n, f.Config.VocabSize}
	ids := Iota(hidden.Graph(), shapes.Make(dtypes.Float32, 1, dims[1]), 1) // exact below 2^24
	chosen := Equal(BroadcastToDims(ids, dims...), BroadcastToDims(ConvertDType(target, dtypes.Float32), dims...))
	pick := func(logprobs *Node) *Node {
		return ReduceSum(Where(chosen, logprobs, ZerosLike(logprobs)), -1)
	}
	if !f.Frozen {
		return pick(f.LogProbs(hidden))
	}
	var direction *Node // [N, D]
	return withGradient(hidden, func(hidden *Node) *Node {
		z := f.Logits(hidden)
		z = Sub(z, ReduceAndKeep(z, ReduceMax, -1))
		e := Exp(z)
		sum := ReduceAndKeep(e, ReduceSum, -1)
		direction = Sub(Gather(f.head(), target), Product(Div(e, sum), f.head()))
		return pick(Sub(z, Log(sum)))
	}, func(v *Node) *Node {
		return Mul(direction, ExpandAxes(v, -1))
	})
}

// Logits builds the output head over hidden states [N, D]: [N, V].
func (f *Forward) Logits(hidden *Node) *Node {
	return ProductT(hidden, f.head())
}

// head is [V, D].
func (f *Forward) head() *Node {
	if f.Config.TieEmbeddings {
		return f.Param(embedName)
	}
	return f.Param(headName)
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
	cos, sin *Node // [B or 1, T, 1, E]
	mask     *Node // [B or 1, 1, 1, T, S] bool
	place    *Node // [B, K, T, 3] int32: slot, head and position of each new key; nil without a cache
	real     *Node // [B, T] bool: the token is not padding; nil without a cache
	slots    *Node // [B, 1] int32; nil without a cache, and when each row has its own slot
}

func (f *Forward) attention(in Input) *attention {
	t := in.Tokens.Shape().Dim(1)
	g := in.Tokens.Graph()
	if in.Cache != nil {
		return f.cachedAttention(in)
	}
	cos, sin := f.Config.ropeTables(t)
	rows := func(table *tensors.Tensor) *Node { return Reshape(ConstTensor(g, table), 1, t, 1, -1) }
	causal := LessOrEqual(Iota(g, shapeI32(t, t), 1), Iota(g, shapeI32(t, t), 0))
	return &attention{cos: rows(cos), sin: rows(sin), mask: Reshape(causal, 1, 1, 1, t, t)}
}

func (f *Forward) cachedAttention(in Input) *attention {
	g := in.Tokens.Graph()
	b, t := in.Tokens.Shape().Dim(0), in.Tokens.Shape().Dim(1)
	k, s := f.Config.NumKVHeads, in.Cache.Layers[0].K.Shape().Dim(2)
	in.Cache.Start.AssertDims(b)
	in.Cache.Count.AssertDims(b)
	slots, own := in.Cache.Slots, in.Cache.Slots == nil
	if own {
		in.Cache.Layers[0].K.AssertDims(b, k, s, -1)
		slots = Iota(g, shapeI32(b), 0)
	}
	slots.AssertDims(b)
	each := func(perRow *Node) *Node { return BroadcastToDims(Reshape(perRow, b, 1), b, t) }
	step := Iota(g, shapeI32(b, t), 1)
	position := MinScalar(Add(each(in.Cache.Start), step), int32(s-1)) // padding may lie beyond

	cos, sin := f.Config.ropeTables(s)
	rows := func(table *tensors.Tensor) *Node {
		return Reshape(Gather(ConstTensor(g, table), ExpandAxes(position, -1)), b, t, 1, -1)
	}
	key := Iota(g, shapeI32(b, t, s), 2)
	place := []*Node{
		BroadcastToDims(Reshape(slots, b, 1, 1, 1), b, k, t, 1), Iota(g, shapeI32(b, k, t, 1), 1), BroadcastToDims(Reshape(position, b, 1, t, 1), b, k, t, 1),
	}
	a := &attention{
		cos: rows(cos), sin: rows(sin),
		mask:  Reshape(LessOrEqual(key, BroadcastToDims(Reshape(position, b, t, 1), b, t, s)), b, 1, 1, t, s),
		place: Concatenate(place, -1),
		real:  LessThan(step, each(in.Cache.Count)),
	}
	if !own {
		a.slots = Reshape(slots, b, 1)
	}
	return a
}

// keep returns the cache [W, K, S, E] with what is new, [B, K, T, E], at its positions. It adds to zeros there, and adds zeros for
// padding: with floating-point numbers both are exact.
func (a *attention) keep(cached, fresh *Node) *Node {
	b, t := fresh.Shape().Dim(0), fresh.Shape().Dim(2)
	real := BroadcastToDims(Reshape(a.real, b, 1, t, 1), fresh.Shape().Dimensions...)
	return ScatterSum(cached, a.place, Where(real, fresh, ZerosLike(fresh)), false, false)
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
	all := KV{K: TransposeAllAxes(key, 0, 2, 1, 3), V: TransposeAllAxes(split("v_proj", k), 0, 2, 1, 3)} // [B, K, T, E]
	next := all
	if cached != nil {
		next = KV{K: a.keep(cached.K, all.K), V: a.keep(cached.V, all.V)}
		all = next
		if a.slots != nil {
			all = KV{K: Gather(next.K, a.slots), V: Gather(next.V, a.slots)} // [B, K, S, E]
		}
	}
	s := all.K.Shape().Dim(2)
	q = MulScalar(TransposeAllAxes(Reshape(q, b, t, k, g, e), 0, 2, 3, 1, 4), 1/math.Sqrt(float64(e))) // [B, K, G, T, E]
	heads := []int{0, 1}
	scores := DotGeneral(Reshape(q, b, k, g*t, e), []int{3}, heads, all.K, []int{3}, heads)
	scores = Reshape(scores, b, k, g, t, s)
	scores = Where(BroadcastToDims(a.mask, b, k, g, t, s), scores, Scalar(x.Graph(), x.DType(), masked))
	y := Product(Reshape(softmax(scores), b, k, g*t, s), all.V)    // [B, K, G*T, E]
	y = TransposeAllAxes(Reshape(y, b, k, g, t, e), 0, 3, 1, 2, 4) // [B, T, K, G, E]
	return f.linear(Reshape(y, b, t, k*g*e), p+"o_proj"), next
}

// masked stands for minus infinity: its exponential is exactly zero, and it has no NaN in its gradient.
const masked = -1e30

// rotate is RoPE (Su et al. 2021) in the half-split form: with x = [x1, x2],
//
//	[x1 cos - x2 sin, x2 cos + x1 sin] = x [cos, cos] + [x2, x1] [-sin, sin]
func (a *attention) rotate(x *Node) *Node {
	dims := x.Shape().Dimensions
	half := dims[len(dims)-1] / 2
	halves := append(slices.Clone(dims[:len(dims)-1]), 2, half)
	swapped := Reshape(Reverse(Reshape(x, halves...), -2), dims...)
	return Add(Mul(x, a.cos), Mul(swapped, a.sin))
}
