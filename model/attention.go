package model

import (
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	. "github.com/goart-dev/art/internal/graphx"
)

// Shape legend: see forward.go.

// attention is what the layers of a pass share: rotations, masks, and the positions of new tokens.
//
// Keys are stored at their positions, with or without a cache, so sums over keys have the same order in every pass.
type attention struct {
	key, query *Node // [B or 1, T, S] int32: positions of key and query
	position   *Node // [B, T] int32: of each new token; nil without a cache, where it is the index
	scatterAt  *Node // [B, K, T, 3] int32: head, block and place in it of each new key; nil without a cache
	gatherAt   *Node // [B K M, 1] int32: the blocks of each row and head, of all heads; nil without a cache
	real       *Node // [B, T] bool: the token is not padding; nil without a cache

	rotations map[rope]rotation
	masks     map[int]*Node // by window, [B or 1, 1, 1, T, S] bool
}

// rotation is a table of rotary embeddings, [B or 1, T, 1, E].
type rotation struct{ cos, sin *Node }

func (f *Forward) attention(in Input) *attention {
	a := &attention{rotations: map[rope]rotation{}, masks: map[int]*Node{}}
	if in.Cache != nil {
		a.locate(f.Config, in)
		return a
	}
	t := in.Tokens.Shape().Dim(1)
	g := in.Tokens.Graph()
	a.key, a.query = Iota(g, shapeI32(1, t, t), 2), Iota(g, shapeI32(1, t, t), 1)
	return a
}

// locate computes the positions of the tokens of a pass with a cache, and where their keys and values are in it.
func (a *attention) locate(c *Config, in Input) {
	g := in.Tokens.Graph()
	b, t := in.Tokens.Shape().Dim(0), in.Tokens.Shape().Dim(1)
	in.Cache.Layers[0].K.AssertDims(c.NumKVHeads, -1, -1, c.HeadDim)
	in.Cache.Start.AssertDims(b)
	in.Cache.Count.AssertDims(b)
	in.Cache.Blocks.AssertDims(b, -1)
	k, p, each := c.NumKVHeads, in.Cache.Layers[0].K.Shape().Dim(1), in.Cache.Layers[0].K.Shape().Dim(2)
	m := in.Cache.Blocks.Shape().Dim(1)
	s := m * each
	perRow := func(x *Node) *Node { return BroadcastToDims(Reshape(x, b, 1), b, t) }
	step := Iota(g, shapeI32(b, t), 1)
	a.position = MinScalar(Add(perRow(in.Cache.Start), step), int32(s-1)) // padding may exceed it
	a.key, a.query = Iota(g, shapeI32(b, t, s), 2), BroadcastToDims(Reshape(a.position, b, t, 1), b, t, s)
	a.real = LessThan(step, perRow(in.Cache.Count))

	number := DivScalar(a.position, int32(each)) // of the block of a row
	block := Gather(in.Cache.Blocks, Stack([]*Node{Iota(g, shapeI32(b, t), 0), number}, -1))
	block = Where(a.real, block, ZerosLike(block))
	perHead := func(x *Node) *Node { return BroadcastToDims(Reshape(x, b, 1, t, 1), b, k, t, 1) }
	a.scatterAt = Concatenate([]*Node{
		Iota(g, shapeI32(b, k, t, 1), 1), perHead(block), perHead(Sub(a.position, MulScalar(number, int32(each)))),
	}, -1)
	first := MulScalar(Iota(g, shapeI32(b, k, m), 1), int32(p)) // block of a head
	a.gatherAt = Reshape(Add(first, BroadcastToDims(Reshape(in.Cache.Blocks, b, 1, m), b, k, m)), b*k*m, 1)
}

// rotation builds the rows of the tables of r for the new tokens.
func (a *attention) rotation(r rope, size int) rotation {
	if found, ok := a.rotations[r]; ok {
		return found
	}
	g, t, s := a.key.Graph(), a.key.Shape().Dim(1), a.key.Shape().Dim(2)
	rows := func(table *tensors.Tensor) *Node {
		if a.position == nil {
			return Reshape(ConstTensor(g, table), 1, t, 1, size)
		}
		return Reshape(Gather(ConstTensor(g, table), ExpandAxes(a.position, -1)), -1, t, 1, size)
	}
	cos, sin := r.tables(s, size)
	a.rotations[r] = rotation{rows(cos), rows(sin)}
	return a.rotations[r]
}

// mask builds the causal mask: a query attends to keys up to its own position, the last window of them unless window is
// 0.
func (a *attention) mask(window int) *Node {
	if found, ok := a.masks[window]; ok {
		return found
	}
	seen := LessOrEqual(a.key, a.query)
	if window > 0 {
		seen = LogicalAnd(seen, GreaterThan(a.key, AddScalar(a.query, int32(-window))))
	}
	d := seen.Shape().Dimensions
	a.masks[window] = Reshape(seen, d[0], 1, 1, d[1], d[2])
	return a.masks[window]
}

// store returns the cache [K, P, C, E] with the new keys or values [B, K, T, E] at their places. What was there is
// replaced: minus infinity is the smaller, and a new number the greater one.
func (a *attention) store(cached, fresh *Node) *Node {
	b, t := fresh.Shape().Dim(0), fresh.Shape().Dim(2)
	dims := fresh.Shape().Dimensions
	real := BroadcastToDims(Reshape(a.real, b, 1, t, 1), dims...)
	low := BroadcastToDims(Const(fresh.Graph(), float32(math.Inf(-1))), dims...)
	low = ScatterMin(cached, a.scatterAt, low, false, false)
	return ScatterMax(low, a.scatterAt, Where(real, fresh, ZerosLike(fresh)), false, false)
}

// load returns the keys or values of each row, [B, K, S, E].
func (a *attention) load(cached *Node) *Node {
	d := cached.Shape().Dimensions // [K, P, C, E]
	x := Gather(Reshape(cached, d[0]*d[1], d[2], d[3]), a.gatherAt)
	return Reshape(x, -1, d[0], a.key.Shape().Dim(2), d[3])
}

// build is grouped-query attention (Ainslie et al. 2023) with rotary embeddings; some models normalise queries and keys
// before the rotation:
//
//	softmax(scale q kᵀ) v
//
// A cap bounds the scores (Bello et al. 2016; Gemma Team 2024): s becomes cap tanh(s / cap).
func (a *attention) build(f *Forward, d *design, l layer, x *Node, p string, cached *KV) (*Node, KV) {
	c := f.Config
	b, t := x.Shape().Dim(0), x.Shape().Dim(1)
	k, e := c.NumKVHeads, c.HeadDim
	g := c.NumHeads / k
	split := func(name string, heads int) *Node {
		return Reshape(f.linear(x, p+name, d.qkvBias), b, t, heads, e)
	}
	rotated := func(name string, heads int) *Node {
		y := split(name+"_proj", heads)
		if d.headNorm {
			y = f.norm(d, y, p+name+"_norm.weight")
		}
		return a.rotation(l.rope, e).rotate(y)
	}
	q, key := rotated("q", k*g), rotated("k", k)
	all := KV{K: TransposeAllAxes(key, 0, 2, 1, 3), V: TransposeAllAxes(split("v_proj", k), 0, 2, 1, 3)} // [B, K, T, E]
	next := all
	if cached != nil {
		next = KV{K: a.store(cached.K, all.K), V: a.store(cached.V, all.V)}
		all = KV{K: a.load(next.K), V: a.load(next.V)}
	}
	s := all.K.Shape().Dim(2)
	q = MulScalar(TransposeAllAxes(Reshape(q, b, t, k, g, e), 0, 2, 3, 1, 4), d.queryScale) // [B, K, G, T, E]
	heads := []int{0, 1}
	scores := DotGeneral(Reshape(q, b, k, g*t, e), []int{3}, heads, all.K, []int{3}, heads)
	scores = softCap(Reshape(scores, b, k, g, t, s), d.scoreCap)
	weights := maskedSoftmax(scores, BroadcastToDims(a.mask(l.window), b, k, g, t, s))
	y := BatchMatMul(Reshape(weights, b, k, g*t, s), all.V)        // [B, K, G*T, E]
	y = TransposeAllAxes(Reshape(y, b, k, g, t, e), 0, 3, 1, 2, 4) // [B, T, K, G, E]
	return f.linear(Reshape(y, b, t, k*g*e), p+"o_proj", d.outBias), next
}

// softCap builds cap tanh(x / cap), and x for a cap of 0.
func softCap(x *Node, limit float64) *Node {
	if limit == 0 {
		return x
	}
	return MulScalar(Tanh(DivScalar(x, limit)), limit)
}

// rotate is RoPE (Su et al. 2021) in the half-split form: with x = [x1, x2],
//
//	[x1 cos - x2 sin, x2 cos + x1 sin] = x [cos, cos] + [x2, x1] [-sin, sin]
func (r rotation) rotate(x *Node) *Node {
	halves := func(x *Node) *Node {
		dims := x.Shape().Dimensions
		last := len(dims) - 1
		return Reshape(x, append(slices.Clone(dims[:last]), 2, dims[last]/2)...)
	}
	y := halves(x)
	return Reshape(Add(Mul(y, halves(r.cos)), Mul(Reverse(y, -2), halves(r.sin))), x.Shape().Dimensions...)
}
