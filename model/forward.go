package model

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// Shape legend: B batch, T new tokens, S = M C cached tokens, in M blocks of C tokens, P blocks of the cache, D hidden,
// H query heads, K key/value heads, G = H/K, E head dimension, V vocabulary, N selected tokens.

// Forward builds the graph of a model.
type Forward struct {
	Config *Config
	// Param returns a weight by its checkpoint name, in the shape of the checkpoint, or nil.
	Param func(name string) *Node
	// Linear is called for every linear layer that [Config.Adaptable] lists: x is [..., in], base computes the layer of
	// the base model, and the result replaces base(x). name is such as "model.layers.0.self_attn.q_proj". nil is base
	// alone.
	Linear func(x *Node, name string, base func(*Node) *Node) *Node
	// Embedding is called for the embedding of ids [B, T, 1], int32. The result replaces x [B, T, D], what the base model
	// looks up. nil is x alone.
	Embedding func(ids *Node, name string, x *Node) *Node
	// Frozen says that the output head is not trained, and has no adapter.
	Frozen bool
}

// Input is what a forward pass reads.
type Input struct {
	// Tokens is [B, T] int32. Rows are padded on the right with any token: later tokens are invisible to earlier ones.
	Tokens *Node
	// Branches are further rows, which begin within others. A pass with a cache has none.
	Branches []Branches
	// Cache is nil for a pass that begins with the first token and stores nothing.
	Cache *Cache
}

// Cache is the KV cache of earlier tokens.
type Cache struct {
	// Start is [B] int32: the number of cached tokens of each row, which is the position of its first new token.
	Start *Node
	// Count is [B] int32: the number of new tokens of each row that are not padding. Start + Count is at most S.
	Count *Node
	// Fresh says that all rows begin with the first token, so Start is 0: they attend to their new tokens, as without a
	// cache, and read nothing of it.
	Fresh bool
	// Blocks is [B, M] int32: the blocks of the cache that hold the tokens of each row, C after C. Those that are written
	// must belong to one row; others may belong to several. Behind the blocks of a row it is 0. Block 0 belongs to nobody:
	// padding is written there, as zeros. Where it is nil the cache has rows in place of blocks.
	Blocks *Node
	// Layers are the keys and values of each layer.
	Layers []KV
	// Prefix are keys and values before those of a cache of rows, which then begin behind it; nil for none. With Blocks or
	// Fresh it is a panic.
	Prefix *Prefix
}

// KV is the cache of one layer: keys, already rotated, and values, both [K, P, C, E], in blocks of C tokens, or
// [B, K, S, E], with the tokens of each row in their order; in float32 or, where the device multiplies it, bfloat16.
type KV struct{ K, V *Node }

// Hidden builds the blocks and the final norm. It returns [B, T, D], or [1, M, D] when there are branches, and the
// cache with the new tokens, if there is one. The caller may donate the old one: a device then writes the new tokens
// into it.
func (f *Forward) Hidden(in Input) (*Node, []KV) {
	in.Tokens.AssertRank(2)
	d := f.Config.design()
	x := f.embed(d, in)
	pass := f.attention(in)
	var cached []KV
	for l := range d.layers {
		past := in.pastOf(l)
		var kv KV
		if x, kv = f.block(&d.layers[l], pass, f.Config.layerName(l), x, past); past != nil {
			cached = append(cached, kv)
		}
	}
	return d.norm.build(f, x, f.Config.root()), cached
}

// embed builds the embeddings of the tokens: [B, T, D].
func (f *Forward) embed(d *design, in Input) *Node {
	ids, name := ExpandAxes(in.tokens(), -1), f.Config.root()+embedName
	x := gatherRows(f.matrix(name+weightSuffix), ids)
	if f.Embedding != nil {
		x = f.Embedding(ids, name, x)
	}
	return scaled(x, d.embedding.scale)
}

// block builds a layer of x [B, T, D], whose names begin with at. It also returns the layer's keys and values.
func (f *Forward) block(l *layer, pass *attention, at string, x *Node, past *past) (*Node, KV) {
	var kv KV
	x = l.mixing.build(f, x, at, func(x *Node) (y *Node) {
		y, kv = l.selfAttention.build(f, pass, x, at, past)
		return y
	})
	return l.feeding.build(f, x, at, func(x *Node) *Node { return l.feed.build(f, x, at) }), kv
}

// LogProbs builds the log-softmax over the vocabulary of hidden states [N, D]: [N, V].
//
//	logprob = z - max(z) - log(sum(exp(z - max(z))))
func (f *Forward) LogProbs(hidden *Node) *Node {
	hidden.AssertDims(-1, f.Config.HiddenSize)
	return logSoftmax(f.Logits(hidden))
}

// Normalized is LogProbs with what it has taken from the logits z of each row: the normalizer [N, 1], log(sum(exp(z))).
func (f *Forward) Normalized(hidden *Node) (logprobs, normalizer *Node) {
	hidden.AssertDims(-1, f.Config.HiddenSize)
	logits := f.Logits(hidden)
	logprobs = logSoftmax(logits)
	first := func(x *Node) *Node { return Slice(x, AxisRange(), AxisRange(0, 1)) }
	return logprobs, Sub(first(logits), first(logprobs))
}

// TokenLogProbs builds the logprobs [N] of the tokens target [N, 1], int32, after hidden states [N, D]: bit for bit the
// elements of LogProbs.
//
// With a frozen head, [N, V] is never materialised. With z the logits, p their softmax and W the head, the gradient of
// the hidden state is
//
//	d logprob / dh = W[target] - p W
//
// which is computed together with the logprob, from the same logits. Where logits are scaled by s and capped, this
// becomes s (c[target] W[target] - (c p) W) with c = 1 - (z / cap)².
func (f *Forward) TokenLogProbs(hidden, target *Node) *Node {
	n := hidden.Shape().Dim(0)
	target.AssertDims(n, 1)
	dims := []int{n, f.Config.VocabSize}
	ids := Iota(hidden.Graph(), shapes.Make(dtypes.Float32, 1, dims[1]), 1) // exact below 2^24
	chosen := Equal(BroadcastToDims(ids, dims...), BroadcastToDims(ConvertDType(target, dtypes.Float32), dims...))
	pick := func(x *Node) *Node {
		return ReduceSum(Where(chosen, x, ZerosLike(x)), -1)
	}
	if !f.Frozen {
		return pick(f.LogProbs(hidden))
	}
	d := f.Config.design()
	var direction *Node // [N, D]
	return withGradient(hidden, func(hidden *Node) *Node {
		logits := f.Logits(hidden)
		z, sum, p := softmaxParts(logits)
		w := gatherRows(f.head(), target)
		if d.head.cap != 0 {
			slope := capSlope(logits, d.head.cap)
			p, w = Mul(slope, p), Mul(ExpandAxes(pick(slope), -1), w)
		}
		direction = scaled(Sub(w, matMul(p, f.head())), d.head.scale)
		return pick(Sub(z, Log(sum)))
	}, func(v *Node) *Node {
		return Mul(direction, ExpandAxes(v, -1))
	})
}

// TokenEntropy builds the entropy [N], in nats, of the next token after hidden states [N, D]. With a frozen head, as in
// TokenLogProbs, [N, V] is never materialised: with logits z, their logprobs l, entropy e, and W the head,
//
//	e = -sum(p l)        de / dz = -p (l + e)        de / dh = de / dz W
func (f *Forward) TokenEntropy(hidden *Node) *Node {
	if !f.Frozen {
		all := f.LogProbs(hidden)
		return Neg(ReduceSum(Mul(Exp(all), all), -1))
	}
	d := f.Config.design()
	var direction *Node // [N, D]
	return withGradient(hidden, func(hidden *Node) *Node {
		logits := f.Logits(hidden)
		z, sum, p := softmaxParts(logits)
		mean := ReduceAndKeep(Mul(p, z), ReduceSum, -1)
		slope := Mul(p, Sub(mean, z)) // of the logits: l + e is z - mean
		if d.head.cap != 0 {
			slope = Mul(slope, capSlope(logits, d.head.cap))
		}
		direction = scaled(matMul(slope, f.head()), d.head.scale)
		return Reshape(Sub(Log(sum), mean), -1)
	}, func(v *Node) *Node {
		return Mul(direction, ExpandAxes(v, -1))
	})
}

// softmaxParts builds the softmax p of logits [N, V], z = logits - max(logits), and the sum of exp(z), [N, 1].
func softmaxParts(logits *Node) (z, sum, p *Node) {
	z = Sub(logits, ReduceAndKeep(logits, ReduceMax, -1))
	e := Exp(z)
	sum = ReduceAndKeep(e, ReduceSum, -1)
	return z, sum, Div(e, sum)
}

// Logits builds the output head over hidden states [N, D]: [N, V].
func (f *Forward) Logits(hidden *Node) *Node {
	d := f.Config.design()
	z := f.adapted(hidden, headLayer, func(x *Node) *Node { return matMulTransposed(x, f.head()) })
	return softCap(scaled(z, d.head.scale), d.head.cap)
}

// adapted builds a linear layer of x [M, in].
func (f *Forward) adapted(x *Node, name string, base func(*Node) *Node) *Node {
	if f.Linear == nil {
		return base(x)
	}
	return f.Linear(x, name, base)
}

// Bias returns the bias [out] of a linear layer, nil where it has none.
func (f *Forward) Bias(layer string) *Node { return f.Param(layer + biasSuffix) }

// head is [V, D].
func (f *Forward) head() matrix {
	if f.Config.TieEmbeddings {
		return f.matrix(f.Config.root() + embedName + weightSuffix)
	}
	return f.matrix(headLayer + weightSuffix)
}
