package model

import (
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	. "github.com/goart-dev/art/internal/graphx"
)

// Shape legend: see forward.go.

// attention is what the layers of a pass share: rotations, masks, and the positions of new tokens.
//
// Keys are stored at their positions, with or without a cache, so sums over keys have the same order in every pass.
type attention struct {
	parts     []*part
	size      int   // positions there are
	position  *Node // [B, T] int32: of each new token; nil where it is the index
	scatterAt *Node // [B, K, T, 3] int32: where each new key is in the cache; nil without one
	gatherAt  *Node // [B K M, 1] int32: the blocks of each row and head, of all heads; nil without a cache of blocks
	real      *Node // [B, T] bool: the token is not padding; nil without a cache
	fresh     bool  // nothing is read from the cache

	rotations map[rope]rotation
	param     func(name string) *Node // may have the tables of rotations
}

// part is a rectangle of queries, R rows of T, and their keys.
type part struct {
	from, rows, length int
	uncached           bool          // there may be a gradient
	prefix             *prefixed     // nil for none
	aligned            bool          // rows begin with the first token: positions are indices
	kernel             kernel        // of the device; nil for none
	keys               *Node         // [R, S, 1] int32: the token at each position of a row; nil when it has its own only
	key, query         *Node         // [R or 1, T, S] int32: positions of key and query
	masks              map[int]*Node // by window, [R or 1, 1, 1, T, S] bool
	pieces             map[[3]span]*part
}

// rotation is a table of rotary embeddings, [B or 1, T, 1, R], of the R numbers of a head that are rotated.
type rotation struct {
	cos, sin    *Node
	interleaved bool // of pairs that are beside one another
}

func (f *Forward) attention(in Input) *attention {
	a := &attention{rotations: map[rope]rotation{}, param: f.Param}
	switch {
	case in.Cache != nil:
		a.locate(f.Config, in)
	case len(in.Branches) > 0:
		a.branch(in)
	default:
		a.size = in.Tokens.Shape().Dim(1)
		a.parts = []*part{causal(in.Tokens)}
	}
	for _, p := range a.parts {
		p.uncached = in.Cache == nil
		if p.uncached && f.flash(in.Tokens.Graph()) {
			p.kernel = attendFlash
		}
	}
	return a
}

// causal is the part of rows that begin with the first token.
func causal(tokens *Node) *part {
	g, b, t := tokens.Graph(), tokens.Shape().Dim(0), tokens.Shape().Dim(1)
	return &part{
		rows: b, length: t, aligned: true,
		key: counted(g, 2, 1, t, t), query: counted(g, 1, 1, t, t), masks: map[int]*Node{},
	}
}

// counted builds the index along an axis, int32. The numbers of that axis alone are computed, and repeated: a device
// keeps what depends on no input for as long as it keeps the graph.
func counted(g *Graph, axis int, dims ...int) *Node {
	one := slices.Repeat([]int{1}, len(dims))
	one[axis] = dims[axis]
	return BroadcastToDims(Iota(g, shapeI32(one...), axis), dims...)
}

// locate computes the positions of the tokens of a pass with a cache, and where their keys and values are in it.
func (a *attention) locate(c *Config, in Input) {
	g := in.Tokens.Graph()
	b, t := in.Tokens.Shape().Dim(0), in.Tokens.Shape().Dim(1)
	in.Cache.Start.AssertDims(b)
	in.Cache.Count.AssertDims(b)
	in.Cache.assertPrefix()
	cached := in.Cache.Layers[0].K
	a.size = cached.Shape().Dim(2)
	if in.Cache.Blocks != nil {
		in.Cache.Blocks.AssertDims(b, -1)
		a.size *= in.Cache.Blocks.Shape().Dim(1)
	}
	size := a.size // of a row
	if in.Cache.Prefix != nil {
		a.size += in.Cache.Prefix.Layers[0].K.Shape().Dim(2)
	}
	perRow := func(x *Node) *Node { return BroadcastToDims(Reshape(x, b, 1), b, t) }
	step := Iota(g, shapeI32(b, t), 1)
	position := MinScalar(Add(perRow(in.Cache.Start), step), int32(a.size-1)) // padding may exceed it
	own, common := position, (*prefixed)(nil)
	if in.Cache.Prefix != nil {
		common = newPrefixed(in.Cache.Prefix, position)
		own = MinScalar(Sub(position, BroadcastToDims(common.count, b, t)), int32(size-1))
	}
	if a.fresh = in.Cache.Fresh; a.fresh {
		a.size, a.parts = t, []*part{causal(in.Tokens)}
	} else {
		a.position = position
		a.parts = []*part{{
			rows: b, length: t, key: counted(g, 2, b, t, size),
			query: BroadcastToDims(Reshape(own, b, t, 1), b, t, size), masks: map[int]*Node{}, prefix: common,
		}}
	}
	a.real = LessThan(step, perRow(in.Cache.Count))
	if in.Cache.Blocks == nil { // keys are at a row, a head and a position in it
		cached.AssertDims(b, c.NumKVHeads, -1, c.HeadDim)
		dims := []int{b, c.NumKVHeads, t, 1}
		own = BroadcastToDims(Reshape(own, b, 1, t, 1), dims...)
		a.scatterAt = Concatenate([]*Node{Iota(g, shapeI32(dims...), 0), Iota(g, shapeI32(dims...), 1), own}, -1)
		return
	}
	cached.AssertDims(c.NumKVHeads, -1, -1, c.HeadDim)
	a.locateBlocks(cached, in.Cache.Blocks, position)
}

// locateBlocks computes where keys, at positions [B, T] of their rows, are in a cache [K, P, C, E], of whose blocks
// each row has some [B, M]: head, block and place in it.
func (a *attention) locateBlocks(cached, blocks, position *Node) {
	g, b, t := position.Graph(), position.Shape().Dim(0), position.Shape().Dim(1)
	k, p, each := cached.Shape().Dim(0), cached.Shape().Dim(1), cached.Shape().Dim(2)
	m := blocks.Shape().Dim(1)
	number := DivScalar(position, int32(each)) // of the block of a row
	block := Gather(blocks, Stack([]*Node{Iota(g, shapeI32(b, t), 0), number}, -1))
	block = Where(a.real, block, ZerosLike(block))
	perHead := func(x *Node) *Node { return BroadcastToDims(Reshape(x, b, 1, t, 1), b, k, t, 1) }
	a.scatterAt = Concatenate([]*Node{
		Iota(g, shapeI32(b, k, t, 1), 1), perHead(block), perHead(Sub(position, MulScalar(number, int32(each)))),
	}, -1)
	first := MulScalar(Iota(g, shapeI32(b, k, m), 1), int32(p)) // block of a head
	a.gatherAt = Reshape(Add(first, BroadcastToDims(Reshape(blocks, b, 1, m), b, k, m)), b*k*m, 1)
}

// rotation builds the rows of the tables of r for the new tokens.
func (a *attention) rotation(r rope) rotation {
	if found, ok := a.rotations[r]; ok {
		return found
	}
	rows := func(table *Node) *Node {
		if a.position == nil {
			return Reshape(Slice(table, AxisRange(0, a.size)), 1, a.size, 1, r.size)
		}
		t := a.position.Shape().Dim(1)
		return Reshape(Gather(table, ExpandAxes(a.position, -1)), -1, t, 1, r.size)
	}
	cosName, sinName := ropeNames(len(a.rotations))
	cos, sin := a.param(cosName), a.param(sinName)
	if cos == nil { // the tables are no inputs of the graph
		constant := func(flat []float32) *Node {
			return ConstTensor(a.parts[0].key.Graph(), tensors.FromFlatDataAndDimensions(flat, a.size, r.size))
		}
		cosines, sines := r.tables(a.size)
		cos, sin = constant(cosines), constant(sines)
	}
	a.rotations[r] = rotation{rows(cos), rows(sin), r.interleaved}
	return a.rotations[r]
}

// mask builds the causal mask: a query attends to the last window keys up to its own position, to all if window is 0.
func (p *part) mask(window int) *Node {
	if found, ok := p.masks[window]; ok {
		return found
	}
	p.masks[window] = seen(p.key, p.query, window)
	return p.masks[window]
}

// seen builds whether queries see keys, of their positions [R or 1, T, S]: [R or 1, 1, 1, T, S].
func seen(key, query *Node, window int) *Node {
	y := LessOrEqual(key, query)
	if window > 0 {
		y = LogicalAnd(y, GreaterThan(key, AddScalar(query, int32(-window))))
	}
	d := y.Shape().Dimensions
	return Reshape(y, d[0], 1, 1, d[1], d[2])
}

// store returns a cache with the new keys or values [B, K, T, E] at their places, rounded to its type. What was there
// is replaced: minus infinity is the smaller, and a new number the greater one. Padding is stored in block 0, as zeros,
// and not at all in a cache of rows, where infinity is not the smaller one.
func (a *attention) store(cached, fresh *Node) *Node {
	fresh = ConvertDType(fresh, cached.DType())
	b, t := fresh.Shape().Dim(0), fresh.Shape().Dim(2)
	dims := fresh.Shape().Dimensions
	real := BroadcastToDims(Reshape(a.real, b, 1, t, 1), dims...)
	infinite := func(sign int) *Node {
		return BroadcastToDims(Scalar(fresh.Graph(), fresh.DType(), math.Inf(sign)), dims...)
	}
	low, padding := infinite(-1), ZerosLike(fresh)
	if a.gatherAt == nil {
		low, padding = Where(real, low, infinite(1)), low
	}
	cleared := ScatterMin(cached, a.scatterAt, low, false, false)
	return ScatterMax(cleared, a.scatterAt, Where(real, fresh, padding), false, false)
}

// load returns the keys or values of each row, [B, K, S, E].
func (a *attention) load(cached *Node) *Node {
	if a.gatherAt == nil {
		return cached
	}
	d := cached.Shape().Dimensions // [K, P, C, E]
	x := Gather(Reshape(cached, d[0]*d[1], d[2], d[3]), a.gatherAt)
	return Reshape(x, -1, d[0], a.size, d[3])
}

// remember returns the keys and values that the tokens of a pass attend to, [B, K, S, E], and those that it ends with:
// the new ones, [B, T, K, E], or a cache that they are stored in. cached may be nil.
func (a *attention) remember(fresh KV, cached *past) (all, next KV) {
	fresh = KV{K: TransposeAllAxes(fresh.K, 0, 2, 1, 3), V: TransposeAllAxes(fresh.V, 0, 2, 1, 3)} // [B, K, T, E]
	if cached == nil {
		return fresh, fresh
	}
	next = KV{K: a.store(cached.K, fresh.K), V: a.store(cached.V, fresh.V)}
	if a.fresh { // rounded as in the cache
		return KV{K: ConvertDType(fresh.K, next.K.DType()), V: ConvertDType(fresh.V, next.V.DType())}, next
	}
	return KV{K: a.load(next.K), V: a.load(next.V)}, next
}

// attend builds attention of queries [R, T, H, E] to keys and values [R, K, S, E], and a prefix if any: [R, T, H*E].
func (p *part) attend(l selfAttention, q *Node, all KV, cached *past) *Node {
	if p.aligned && p.hasKernel(l, p.length) {
		return p.kernel(q, all, l.scale)
	}
	b, t, e := p.rows, p.length, q.Shape().Dim(3)
	k, s := all.K.Shape().Dim(1), all.K.Shape().Dim(2)
	g := q.Shape().Dim(2) / k
	q = MulScalar(TransposeAllAxes(Reshape(q, b, t, k, g, e), 0, 2, 3, 1, 4), l.scale) // [R, K, G, T, E]
	var y *Node                                                                        // [R, K, G, T, E]
	switch device := q.Graph().Backend(); {
	case p.prefix != nil:
		y = p.attendPrefix(q, all, *cached.prefix, l.window, l.cap)
	case inTiles(device, t, s):
		y = p.attendTiles(q, KV{K: float32s(all.K), V: float32s(all.V)}, l.window, l.cap, tileSize)
	default:
		fused := ProfileOf(device).FusedAttention
		y = (&pieces{
			part: p, window: l.window, limit: l.cap, most: pieceQueries(b, t, s, k*g, fused), fused: fused,
			q: q, k: all.K, v: all.V,
		}).build()
	}
	return Reshape(TransposeAllAxes(y, 0, 3, 1, 2, 4), b, t, k*g*e)
}

// attendAtOnce builds attention of scaled queries [R, K, G, T, E] to keys [R, K, S, E] at once: [R, K, G, T, E].
func (p *part) attendAtOnce(q *Node, all KV, window int, limit float64) *Node {
	b, k, g, t, e := q.Shape().Dim(0), q.Shape().Dim(1), q.Shape().Dim(2), q.Shape().Dim(3), q.Shape().Dim(4)
	s := all.K.Shape().Dim(2)
	heads := []int{0, 1}
	scores := dotOf(Reshape(q, b, k, g*t, e), all.K).General([]int{3}, heads, []int{3}, heads)
	scores = softCap(Reshape(scores, b, k, g, t, s), limit)
	weights := maskedSoftmax(scores, BroadcastToDims(p.mask(window), b, k, g, t, s))
	y := dotOf(Reshape(weights, b, k, g*t, s), all.V).General([]int{3}, heads, []int{2}, heads) // [R, K, G*T, E]
	return Reshape(y, b, k, g, t, e)
}

// softCap builds cap tanh(x / cap), and x for a cap of 0.
func softCap(x *Node, limit float64) *Node {
	if limit == 0 {
		return x
	}
	return MulScalar(Tanh(DivScalar(x, limit)), limit)
}

// capSlope builds the slope of [softCap], of what it has made: 1 - (y / cap)².
func capSlope(y *Node, limit float64) *Node {
	y = DivScalar(y, limit)
	return OneMinus(Mul(y, y))
}

// rotate is RoPE (Su et al. 2021) of x [B, T, H, E] in the half-split form: with x = [x1, x2],
//
//	[x1 cos - x2 sin, x2 cos + x1 sin] = x [cos, cos] + [x2, x1] [-sin, sin]
//
// or, interleaved, with x1 and x2 beside one another. Numbers of a head behind those of the table stay as they are.
func (r rotation) rotate(x *Node) *Node {
	dims := x.Shape().Dimensions
	last := len(dims) - 1
	size := r.cos.Shape().Dim(-1)
	if size < dims[last] {
		part := func(s SliceAxisSpec) *Node { return Slice(x, AxisRange(), AxisRange(), AxisRange(), s) }
		return Concatenate([]*Node{r.rotate(part(AxisRange(0, size))), part(AxisRange(size, dims[last]))}, last)
	}
	pairs, swapped := []int{2, size / 2}, -2
	if r.interleaved {
		pairs, swapped = []int{size / 2, 2}, -1
	}
	parts := func(x *Node) *Node { return Reshape(x, append(slices.Clone(x.Shape().Dimensions[:last]), pairs...)...) }
	y := parts(x)
	return Reshape(Add(Mul(y, parts(r.cos)), Mul(Reverse(y, swapped), parts(r.sin))), dims...)
}

// flash reports whether a pass computes attention with a kernel of the device. It rounds queries, keys, weights and
// values to bfloat16, so it is for models whose matrices are rounded too.
func (f *Forward) flash(g *Graph) bool {
	return HasFlashAttention(g.Backend(), f.Config.HeadDim) &&
		f.Param(f.Config.Linears()[0].Name+weightSuffix).DType() != dtypes.Float32
}

// kernel builds causal attention of queries [R, T, H, E], which it scales, and keys [R, K, T, E]: [R, T, H*E].
type kernel func(q *Node, all KV, scale float64) *Node

// hasKernel reports whether the kernel of a device computes the attention of a layer to some tokens.
func (p *part) hasKernel(l selfAttention, tokens int) bool {
	return p.kernel != nil && l.cap == 0 && (l.window == 0 || l.window >= tokens)
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
