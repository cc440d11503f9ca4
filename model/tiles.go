package model

import (
	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"

	. "github.com/goart-dev/art/internal/graphx"
)

// Shape legend: R rows of T queries and S keys, in tiles of t queries and s keys; K key/value heads, G query heads for
// each of them, E head dimension.

// tiledFrom is the scores of a head, those of 1,024 tokens, from which a device that would keep them has tiles.
const tiledFrom = 1 << 20

// Sizes of tiles: a sequence has at most maxTiles of them, since each makes the graph longer, and they have at least
// minTile tokens.
const (
	maxTiles = 8
	minTile  = 512
)

// inTiles reports whether a device computes attention of t queries to s keys in tiles.
func inTiles(device compute.Backend, t, s int) bool {
	return t > 1 && t*s >= tiledFrom && !ProfileOf(device).FusedAttention
}

// span are the tokens from one to another, without the latter.
type span struct{ from, to int }

// spans cuts n tokens into tiles.
func spans(n, size int) (list []span) {
	for from := 0; from < n; from += size {
		list = append(list, span{from, min(from+size, n)})
	}
	return list
}

// tileSize is the number of tokens of a tile of n.
func tileSize(n int) int { return max(minTile, (n+maxTiles-1)/maxTiles) }

// tiles is attention that keeps scores of one tile at a time (Milakov and Gimelshein 2018; Dao et al. 2022): of each
// row of scores it carries the maximum m, and the sums of exp(x - m) and of their products with the values. Its
// gradient computes the scores again, from log(sum(exp(x))).
type tiles struct {
	part          *part
	window        int
	limit         float64 // cap of the scores, 0 for none
	queries, keys []span

	q, k, v         *Node   // [R, K, G, T, E], scaled, and [R, K, S, E]
	out, normalizer []*Node // of each tile of queries: [R, K, G, t, E], and log(sum(exp(x))) [R, K, G, t, 1]
}

// attendTiles builds attention of scaled queries [R, K, G, T, E] and keys [R, K, S, E] in tiles: [R, K, G, T, E].
func (p *part) attendTiles(q *Node, all KV, window int, limit float64, size func(n int) int) *Node {
	t := &tiles{part: p, window: window, limit: limit}
	queries, keys := q.Shape().Dim(3), all.K.Shape().Dim(2)
	t.queries, t.keys = spans(queries, size(queries)), spans(keys, size(keys))
	t.q, t.k, t.v = q, all.K, all.V
	return withGradients([]*Node{q, all.K, all.V}, t.build, t.gradient)
}

// rowsOf builds the tokens of a span, of x [R, K, G, T, E].
func (s span) rowsOf(x *Node) *Node {
	return Slice(x, AxisRange(), AxisRange(), AxisRange(), AxisRange(s.from, s.to))
}

// keysOf builds the tokens of a span, of x [R, K, S, E].
func (s span) keysOf(x *Node) *Node {
	return Slice(x, AxisRange(), AxisRange(), AxisRange(s.from, s.to))
}

func (t *tiles) build() *Node {
	t.out, t.normalizer = nil, nil
	for _, q := range t.queries {
		var m, sum, y *Node
		for _, k := range t.keys {
			if !t.meets(q, k) {
				continue
			}
			x := t.scores(q, k)
			best := ReduceAndKeep(x, ReduceMax, -1)
			if m != nil {
				best = Max(m, best)
			}
			p := Exp(Sub(x, best))
			mass, part := ReduceAndKeep(p, ReduceSum, -1), weighted(p, k.keysOf(t.v))
			if m != nil {
				scale := Exp(Sub(m, best))
				mass, part = Add(Mul(sum, scale), mass), Add(Mul(y, scale), part)
			}
			m, sum, y = best, mass, part
		}
		t.out = append(t.out, Div(y, sum))
		t.normalizer = append(t.normalizer, Add(m, Log(sum)))
	}
	return Concatenate(t.out, 3)
}

// scores builds the scores of a tile [R, K, G, t, s], with an exponential of zero for keys that a query does not see.
func (t *tiles) scores(q, k span) *Node {
	x := softCap(rowsByKeys(q.rowsOf(t.q), k.keysOf(t.k)), t.limit)
	if seen := t.seen(q, k); seen != nil {
		x = Where(BroadcastToDims(seen, x.Shape().Dimensions...), x, Scalar(x.Graph(), x.DType(), masked))
	}
	return x
}

// meets reports whether a query of one span may see a key of another. Only where positions are indices is that known.
func (t *tiles) meets(q, k span) bool {
	return !t.part.aligned || k.from < q.to && (t.window == 0 || k.to-1 > q.from-t.window)
}

// seen builds what the queries of a tile see [R or 1, 1, 1, t, s], nil for all of it.
func (t *tiles) seen(q, k span) *Node {
	if t.part.aligned && k.to-1 <= q.from && (t.window == 0 || k.from > q.to-1-t.window) {
		return nil
	}
	tile := func(x *Node) *Node { return Slice(x, AxisRange(), AxisRange(q.from, q.to), AxisRange(k.from, k.to)) }
	return seen(tile(t.part.key), tile(t.part.query), t.window)
}

// gradient maps the gradient of the output, dy, to those of queries, keys and values. With the weights p, those
// of the scores are p (dy vᵀ - sum(dy y)).
func (t *tiles) gradient(dy *Node) []*Node {
	dk, dv := make([]*Node, len(t.keys)), make([]*Node, len(t.keys))
	var dq []*Node
	for i, q := range t.queries {
		g := q.rowsOf(dy)
		level := ReduceAndKeep(Mul(g, t.out[i]), ReduceSum, -1)
		var here *Node
		for j, k := range t.keys {
			if !t.meets(q, k) {
				continue
			}
			x := t.scores(q, k)
			p := Exp(Sub(x, t.normalizer[i]))
			dx := Mul(p, Sub(rowsByKeys(g, k.keysOf(t.v)), level))
			if t.limit != 0 {
				dx = Mul(dx, Where(Equal(p, ZerosLike(p)), ZerosLike(p), capSlope(x, t.limit)))
			}
			here = plus(here, weighted(dx, k.keysOf(t.k)))
			dk[j] = plus(dk[j], byKeys(dx, q.rowsOf(t.q)))
			dv[j] = plus(dv[j], byKeys(p, g))
		}
		dq = append(dq, here)
	}
	return []*Node{Concatenate(dq, 3), t.join(dk), t.join(dv)}
}

// join builds the gradient of keys or values [R, K, S, E] of its tiles; that of a tile which no query meets is zero.
func (t *tiles) join(list []*Node) *Node {
	for j, k := range t.keys {
		if list[j] == nil {
			list[j] = ZerosLike(k.keysOf(t.k))
		}
	}
	return Concatenate(list, 2)
}

// plus adds y to a sum that may have nothing yet.
func plus(sum, y *Node) *Node {
	if sum == nil {
		return y
	}
	return Add(sum, y)
}

// perHead joins the queries of the heads that share keys: x [R, K, G, t, N] as [R, K, G*t, N].
func perHead(x *Node) *Node {
	d := x.Shape().Dimensions
	return Reshape(x, d[0], d[1], d[2]*d[3], d[4])
}

// rowsByKeys builds the products of x [R, K, G, t, E] with each of keys [R, K, s, E]: [R, K, G, t, s].
func rowsByKeys(x, keys *Node) *Node {
	d := x.Shape().Dimensions
	y := DotGeneral(perHead(x), []int{3}, []int{0, 1}, keys, []int{3}, []int{0, 1})
	return Reshape(y, d[0], d[1], d[2], d[3], -1)
}

// weighted builds the sums of values [R, K, s, E] with weights [R, K, G, t, s]: [R, K, G, t, E].
func weighted(weights, values *Node) *Node {
	d := weights.Shape().Dimensions
	return Reshape(BatchMatMul(perHead(weights), values), d[0], d[1], d[2], d[3], -1)
}

// byKeys builds the sums over queries of x [R, K, G, t, E] with weights [R, K, G, t, s]: [R, K, s, E].
func byKeys(weights, x *Node) *Node {
	return DotGeneral(perHead(weights), []int{2}, []int{0, 1}, perHead(x), []int{2}, []int{0, 1})
}
