package model

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// Sizes of the pieces in which a gradient computes attention weights again: pieceScores of them, which stay in a cache,
// if there are no more than maxPieces then. Each makes the graph longer.
const (
	pieceScores = 1 << 20
	maxPieces   = 32
)

// KeptScores is how many of n attention scores a gradient has at a time on a device that fuses attention, see
// [graphx.Profile]; one query's at least.
func KeptScores(n int) int { return max(min(n, pieceScores), (n+maxPieces-1)/maxPieces) }

// pieceQueries is how many queries of some rows have no more than KeptScores.
func pieceQueries(rows, queries, keys, heads int) int {
	each := keys * heads
	return max(1, KeptScores(rows*queries*each)/each)
}

// pieces is [part.attendAtOnce] whose gradient keeps no weights. They take the square of the tokens in memory, and as
// much time to write and to read as to compute: so they are computed again, those of most queries at a time, to the
// keys that these may see. FlashAttention (Dao et al. 2022) does so tile by tile.
type pieces struct {
	part   *part
	window int
	limit  float64 // cap of the scores, 0 for none
	most   int
	dims   [][]int // of the next three

	q, k, v *Node // [R, K, G, T, E], scaled, and [R, K, S, E]
}

// attendInPieces builds the attention of scaled queries [R, K, G, T, E] to keys and values [R, K, S, E], whose gradient
// is computed in pieces of most queries: [R, K, G, T, E].
func (p *part) attendInPieces(q *Node, all KV, window int, limit float64, most int) *Node {
	a := &pieces{part: p, window: window, limit: limit, most: most}
	a.dims = [][]int{q.Shape().Dimensions, all.K.Shape().Dimensions, all.V.Shape().Dimensions}
	return withGradient(flatten(q, all.K, all.V), func(x *Node) *Node {
		in := unflatten(x, a.dims)
		a.q, a.k, a.v = in[0], in[1], in[2]
		return p.attendAtOnce(a.q, KV{K: a.k, V: a.v}, window, limit)
	}, a.gradient)
}

// gradient maps the gradient of the output, dy, to that of the flat queries, keys and values.
func (a *pieces) gradient(dy *Node) *Node {
	rows, queries := a.dims[0][0], a.dims[0][3]
	var dq, dk, dv []*Node
	before := []*Node{dy}
	for _, r := range spans(rows, max(1, a.most/queries)) {
		var ofQueries []*Node
		var ofKeys, ofValues *Node
		for _, q := range spans(queries, min(a.most, queries)) {
			keys := a.part.keysSeen(q, a.dims[1][2], a.window)
			ofPiece, k, v := a.piece(dy, r, q, keys, before)
			ofQueries = append(ofQueries, ofPiece)
			ofKeys = plus(ofKeys, keys.padded(k, a.dims[1][2]))
			ofValues = plus(ofValues, keys.padded(v, a.dims[1][2]))
			before = []*Node{ofPiece, ofKeys, ofValues}
		}
		dq, dk, dv = append(dq, Concatenate(ofQueries, 3)), append(dk, ofKeys), append(dv, ofValues)
	}
	return flatten(Concatenate(dq, 0), Concatenate(dk, 0), Concatenate(dv, 0))
}

// piece builds the gradients of some queries of some rows, and of the keys and values that these may see: after those
// of the piece before, so that one of them is in memory. That of the scores is softmaxGradient(weights, dy vᵀ).
func (a *pieces) piece(dy *Node, rows, queries, keys span, before []*Node) (dq, dk, dv *Node) {
	q := SchedulingBarrier(queries.rowsOf(rows.batchOf(a.q)), before...)
	k, v, dy := keys.keysOf(rows.batchOf(a.k)), keys.keysOf(rows.batchOf(a.v)), queries.rowsOf(rows.batchOf(dy))
	seen := a.part.within(rows, queries, keys).mask(a.window)
	x := softCap(rowsByKeys(q, k), a.limit)
	seen = BroadcastToDims(seen, x.Shape().Dimensions...)
	w := maskedSoftmax(x, seen)
	dx := softmaxGradient(w, Where(seen, rowsByKeys(dy, v), ScalarZero(x.Graph(), x.DType())))
	if a.limit != 0 {
		slope := DivScalar(x, a.limit)
		dx = Mul(dx, OneMinus(Mul(slope, slope)))
	}
	return weighted(dx, k), byKeys(dx, q), byKeys(w, dy)
}

// keysSeen is a span of n keys that has all which some queries may see.
func (p *part) keysSeen(queries span, n, window int) span {
	switch {
	case !p.aligned:
		return span{0, n}
	case window == 0:
		return span{0, queries.to}
	}
	return span{max(0, queries.from-window+1), queries.to}
}

// within is the part of some rows, some queries of these, and some keys.
func (p *part) within(rows, queries, keys span) *part {
	of := func(x *Node) *Node { // [R or 1, T, S]
		if x.Shape().Dim(0) > 1 {
			x = rows.batchOf(x)
		}
		return Slice(x, AxisRange(), AxisRange(queries.from, queries.to), AxisRange(keys.from, keys.to))
	}
	return &part{
		rows: rows.to - rows.from, length: queries.to - queries.from, key: of(p.key), query: of(p.query),
		masks: map[int]*Node{},
	}
}

// batchOf builds the rows of a span, of x [R, ...].
func (s span) batchOf(x *Node) *Node { return Slice(x, AxisRange(s.from, s.to)) }

// padded builds x [R, K, s, E], of the keys of a span, with zeros for the others of n.
func (s span) padded(x *Node, n int) *Node {
	if s.from == 0 && s.to == n {
		return x
	}
	return Pad(x, ScalarZero(x.Graph(), x.DType()), PadAxis{}, PadAxis{}, PadAxis{Start: s.from, End: n - s.to}, PadAxis{})
}
