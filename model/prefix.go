package model

import . "github.com/gomlx/gomlx/core/graph"

// Shape legend: Z groups of R/Z rows each, R rows of T queries, P keys of a prefix and S keys of a row; K key/value
// heads, G query heads for each of them, E head dimension.

// Prefix are keys and values that rows have in common and that are read once for all of them: those of the first tokens
// of their sequences. Each row attends to them and to its own; both are merged by their log-sum-exp (Juravsky et al.
// 2024, Hydragen; Ye et al. 2024, FlashInfer). So sums have another order than without a prefix, and the numbers differ
// by rounding.
type Prefix struct {
	// Count is [Z] int32: the tokens of the prefix of each group of rows, which follow one another. The first new token of
	// none is in it.
	Count *Node
	// Layers are the keys and values of each layer, [Z, K, P, E].
	Layers []KV
}

func (c *Cache) assertPrefix() {
	switch {
	case c.Prefix == nil:
	case c.Blocks != nil:
		panic("model: Cache.Prefix is for a cache of rows: leave Blocks nil, or let each row name the blocks of the prefix")
	case c.Fresh:
		panic("model: Cache.Fresh reads nothing of a cache, and so no Prefix: leave one of them out")
	}
}

// past is what a layer attends to besides the new tokens.
type past struct {
	KV
	prefix *KV // nil for none
}

// pastOf returns that of a layer; nil without a cache.
func (in Input) pastOf(layer int) *past {
	if in.Cache == nil {
		return nil
	}
	p := &past{KV: in.Cache.Layers[layer]}
	if in.Cache.Prefix != nil {
		p.prefix = &in.Cache.Prefix.Layers[layer]
	}
	return p
}

type prefixed struct {
	groups, size int
	count        *Node // [R, 1] int32
	query        *Node // [R, T] int32: positions
	masks        map[int]*Node
}

// newPrefixed returns the prefix of rows whose new tokens have these positions [R, T].
func newPrefixed(x *Prefix, position *Node) *prefixed {
	z, rows := x.Layers[0].K.Shape().Dim(0), position.Shape().Dim(0)
	x.Count.AssertDims(z)
	count := BroadcastToDims(Reshape(x.Count, z, 1), z, rows/z)
	return &prefixed{
		groups: z, size: x.Layers[0].K.Shape().Dim(2), count: Reshape(count, rows, 1), query: position,
		masks: map[int]*Node{},
	}
}

// mask builds whether queries see keys of the prefix: [R, T, P].
func (p *prefixed) mask(window int) *Node {
	if found, ok := p.masks[window]; ok {
		return found
	}
	r, t := p.query.Shape().Dim(0), p.query.Shape().Dim(1)
	key := counted(p.query.Graph(), 2, r, t, p.size)
	y := LessThan(key, BroadcastToDims(Reshape(p.count, r, 1, 1), r, t, p.size))
	if window > 0 {
		last := BroadcastToDims(Reshape(AddScalar(p.query, int32(-window)), r, t, 1), r, t, p.size)
		y = LogicalAnd(y, GreaterThan(key, last))
	}
	p.masks[window] = y
	return y
}

// sums are those of a softmax over some of its elements: the greatest one m, the sum of exp(x - m), and that of the
// products with the values.
type sums struct{ most, mass, values *Node }

// attendPrefix builds attention to a prefix and to keys of their own [R, K, S, E], of scaled q: [R, K, G, T, E].
func (p *part) attendPrefix(q *Node, own KV, common KV, window int, limit float64) *Node {
	r, k, g, t, e := q.Shape().Dim(0), q.Shape().Dim(1), q.Shape().Dim(2), q.Shape().Dim(3), q.Shape().Dim(4)
	z := p.prefix.groups
	each := r / z
	// Rows of a group are queries of the same keys: [Z, K, R/Z*G*T, E].
	joined := Reshape(TransposeAllAxes(Reshape(q, z, each, k, g*t, e), 0, 2, 1, 3, 4), z, k, each*g*t, e)
	of := p.prefix.mask(window) // [R, T, P]
	size := p.prefix.size
	of = BroadcastToDims(Reshape(of, z, 1, each, 1, t, size), z, k, each, g, t, size)
	back := func(x *Node) *Node { // [Z, K, R/Z*G*T, N] as [R, K, G*T, N]
		n := x.Shape().Dim(3)
		return Reshape(TransposeAllAxes(Reshape(x, z, k, each, g*t, n), 0, 2, 1, 3, 4), r, k, g*t, n)
	}
	a := sumsOf(joined, common, Reshape(of, z, k, each*g*t, size), limit)
	a = sums{back(a.most), back(a.mass), back(a.values)}
	s := own.K.Shape().Dim(2)
	seen := Reshape(BroadcastToDims(p.mask(window), r, k, g, t, s), r, k, g*t, s)
	b := sumsOf(Reshape(q, r, k, g*t, e), own, seen, limit)
	most := Max(a.most, b.most)
	x, y := Exp(Sub(a.most, most)), Exp(Sub(b.most, most))
	sum := Div(Add(Mul(a.values, x), Mul(b.values, y)), Add(Mul(a.mass, x), Mul(b.mass, y)))
	return Reshape(sum, r, k, g, t, e)
}

// sumsOf builds the sums of queries [B, K, N, E] over those of keys and values [B, K, S, E] that they see [B, K, N, S].
func sumsOf(q *Node, all KV, seen *Node, limit float64) sums {
	heads := []int{0, 1}
	x := softCap(dotOf(q, all.K).General([]int{3}, heads, []int{3}, heads), limit)
	x = Where(seen, x, Scalar(x.Graph(), x.DType(), masked))
	most := ReduceAndKeep(x, ReduceMax, -1)
	weights := Exp(Sub(x, most))
	values := dotOf(weights, all.V).General([]int{3}, heads, []int{2}, heads)
	return sums{most, ReduceAndKeep(weights, ReduceSum, -1), values}
}
