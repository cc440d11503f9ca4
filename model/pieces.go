package model

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// Sizes of the pieces in which attention has scores in memory: so many of them, if there are no more pieces than that.
// Each makes the graph longer. On a device that fuses attention they stay in a large cache. Others take long to
// compile.
const (
	fusedScores, fusedPieces = 1 << 21, 16
	otherScores, otherPieces = 1 << 26, 8
)

// Queries of a piece of causal attention on a device that fuses it: so many, if a row has no more pieces than that. A
// piece has all keys that its last query sees. Where the others do not see them such a device computes no scores, but
// it does compute exponentials. Programs grow little with pieces of a forward pass, and much with those of a gradient.
const causalQueries, forwardPieces, gradientPieces = 128, 8, 4

// KeptScores is how many of n attention scores of a layer are in memory at a time, one query's at least: in a gradient,
// and on a device that does not fuse attention in any pass.
func KeptScores(n int, fused bool) int {
	size, most := otherScores, otherPieces
	if fused {
		size, most = fusedScores, fusedPieces
	}
	return max(min(n, size), (n+most-1)/most)
}

// pieceQueries is how many queries of some rows have no more than KeptScores.
func pieceQueries(rows, queries, keys, heads int, fused bool) int {
	each := keys * heads
	return max(1, KeptScores(rows*queries*each, fused)/each)
}

// pieces is [part.attendAtOnce] that has no more scores in memory than those of most queries, to the keys that these
// may see. Its gradient computes weights again: they take the square of the tokens in memory, and as much time to write
// and to read as to compute. FlashAttention (Dao et al. 2022) does so tile by tile.
type pieces struct {
	part   *part
	window int
	limit  float64 // cap of the scores, 0 for none
	most   int
	fused  bool // the device keeps no scores of a forward pass

	q, k, v *Node // [R, K, G, T, E], scaled, and [R, K, S, E]
}

// build builds the attention of queries to keys and values: [R, K, G, T, E].
func (a *pieces) build() *Node {
	if !a.part.uncached {
		return a.forward()
	}
	return withGradients([]*Node{a.q, a.k, a.v}, a.forward, a.gradient)
}

func (a *pieces) rows() []span { return spans(a.q.Shape().Dim(0), max(1, a.most/a.q.Shape().Dim(3))) }

// queries are the spans of the queries of a row, of about the same size.
func (a *pieces) queries() []span {
	n, most := a.q.Shape().Dim(3), a.most
	if a.fused && most < n { // if it is cut, then so that less is masked
		most = min(most, a.causal(n, gradientPieces))
	}
	parts := (n + most - 1) / most
	return spans(n, (n+parts-1)/parts)
}

// causal is the queries of a piece of n of a row, all of them where later keys are not known to be masked.
func (a *pieces) causal(n, parts int) int {
	if !a.part.aligned {
		return n
	}
	return max(causalQueries, (n+parts-1)/parts)
}

func (a *pieces) forward() *Node {
	rows, queries := a.rows(), a.queries()
	if n := a.q.Shape().Dim(3); a.fused {
		rows, queries = []span{{0, a.q.Shape().Dim(0)}}, spans(n, a.causal(n, forwardPieces))
	}
	if len(rows)*len(queries) == 1 {
		return a.part.attendAtOnce(a.q, KV{K: a.k, V: a.v}, a.window, a.limit)
	}
	var list []*Node
	for _, r := range rows {
		var y []*Node
		for _, q := range queries {
			keys := a.part.keysSeen(q, a.k.Shape().Dim(2), a.window)
			if a.fused { // where the keys begin changes bits, unless whole blocks are left out
				keys.from -= keys.from % keyBlock
			}
			kv := KV{K: keys.keysOf(r.batchOf(a.k)), V: keys.keysOf(r.batchOf(a.v))}
			y = append(y, a.part.within(r, q, keys).attendAtOnce(q.rowsOf(r.batchOf(a.q)), kv, a.window, a.limit))
		}
		list = append(list, Concatenate(y, 3))
	}
	return Concatenate(list, 0)
}

// keyBlock is how many keys the CPU device adds up at once; it then adds those sums. Blocks of zeros change no bit.
const keyBlock = 512

// gradient maps the gradient of the output, dy, to those of queries, keys and values.
func (a *pieces) gradient(dy *Node) []*Node {
	var dq, dk, dv []*Node
	n, before := a.k.Shape().Dim(2), []*Node{dy}
	for _, r := range a.rows() {
		var ofQueries []*Node
		var ofKeys, ofValues *Node
		for _, q := range a.queries() {
			keys := a.part.keysSeen(q, n, a.window)
			ofPiece, k, v := a.piece(dy, r, q, keys, before)
			ofQueries = append(ofQueries, ofPiece)
			ofKeys, ofValues = plus(ofKeys, keys.padded(k, n)), plus(ofValues, keys.padded(v, n))
			before = []*Node{ofPiece, ofKeys, ofValues}
		}
		dq, dk, dv = append(dq, Concatenate(ofQueries, 3)), append(dk, ofKeys), append(dv, ofValues)
	}
	return []*Node{Concatenate(dq, 0), Concatenate(dk, 0), Concatenate(dv, 0)}
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
		dx = Mul(dx, capSlope(x, a.limit))
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

// within is the part of some rows, queries and keys: the same one for all layers, which share its masks.
func (p *part) within(rows, queries, keys span) *part {
	at := [3]span{rows, queries, keys}
	if p.pieces[at] == nil {
		of := func(x *Node) *Node { // [R or 1, T, S]
			if x.Shape().Dim(0) > 1 {
				x = rows.batchOf(x)
			}
			return Slice(x, AxisRange(), AxisRange(queries.from, queries.to), AxisRange(keys.from, keys.to))
		}
		if p.pieces == nil {
			p.pieces = map[[3]span]*part{}
		}
		p.pieces[at] = &part{
			rows: rows.to - rows.from, length: queries.to - queries.from, key: of(p.key), query: of(p.query),
			masks: map[int]*Node{},
		}
	}
	return p.pieces[at]
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
