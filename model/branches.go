package model

import . "github.com/gomlx/gomlx/core/graph"

// Shape legend: R rows of a rectangle, T tokens of a row, S keys of a row, M tokens of the pass; see also forward.go.

// Branches are rows that go on where others have got to, so that what sequences have in common is computed once. The
// tokens of a pass are counted through: those of Input.Tokens row by row, then those of each Branches.
//
// Each row has its keys gathered to their positions. So sums over keys have the order that they have in a pass over the
// sequence alone, and the numbers are the same to the last bit.
type Branches struct {
	// Tokens is [R, T] int32, padded on the right as Input.Tokens are.
	Tokens *Node
	// Start is [R] int32: the position of the first token of each row.
	Start *Node
	// Keys is [R, S] int32: the token of the pass at each position of a row's sequence, from the first on. S is at least
	// the end of the longest one; beyond its end a row may name any.
	Keys *Node
}

// tokens lists those of a pass: [B, T], or [1, M] when there are branches.
func (in Input) tokens() *Node {
	if len(in.Branches) == 0 {
		return in.Tokens
	}
	list := []*Node{Reshape(in.Tokens, 1, -1)}
	for _, b := range in.Branches {
		list = append(list, Reshape(b.Tokens, 1, -1))
	}
	return Concatenate(list, 1)
}

// branch computes the parts of a pass with branches, and the positions of its tokens.
func (a *attention) branch(in Input) {
	g, root := in.Tokens.Graph(), causal(in.Tokens)
	a.size, a.parts = root.length, []*part{root}
	m := root.rows * root.length
	positions := []*Node{Reshape(Iota(g, shapeI32(root.rows, root.length), 1), 1, m)}
	for _, b := range in.Branches {
		r, t, s := b.Tokens.Shape().Dim(0), b.Tokens.Shape().Dim(1), b.Keys.Shape().Dim(1)
		b.Start.AssertDims(r)
		b.Keys.AssertDims(r, s)
		position := Add(BroadcastToDims(Reshape(b.Start, r, 1), r, t), Iota(g, shapeI32(r, t), 1))
		a.parts = append(a.parts, &part{
			from: m, rows: r, length: t, keys: Reshape(b.Keys, r, s, 1), key: counted(g, 2, r, t, s),
			query: BroadcastToDims(Reshape(position, r, t, 1), r, t, s), masks: map[int]*Node{},
		})
		positions = append(positions, Reshape(position, 1, r*t))
		a.size, m = max(a.size, s), m+r*t
	}
	a.position = MinScalar(Concatenate(positions, 1), int32(a.size-1)) // padding may exceed it
}

// join builds and joins the attention of each part, [1, M, H*E]: q is [1, M, H, E], keys and values are [1, M, K, E].
func (a *attention) join(l selfAttention, q *Node, fresh KV) *Node {
	var list []*Node
	for _, p := range a.parts {
		kv := KV{K: p.gather(fresh.K), V: p.gather(fresh.V)}
		var y *Node
		if p.computesWhole(l) {
			y = p.attendWhole(l, q, kv)
		} else {
			y = p.attend(l, p.slice(q), kv, nil)
		}
		list = append(list, Reshape(y, 1, p.rows*p.length, -1))
	}
	return Concatenate(list, 1)
}

// wholeParts bounds how much of the scores of whole rows may be of what branches share: all of S²/2 are computed for
// the T·S that are needed.
const wholeParts = 4

// computesWhole reports whether the kernel of the device computes the whole rows that branches end. It computes scores
// several times as fast as attention that keeps them, and so may compute more.
func (p *part) computesWhole(l selfAttention) bool {
	if p.keys == nil {
		return false
	}
	s := p.keys.Shape().Dim(1)
	return p.hasKernel(l, s) && s <= 2*wholeParts*p.length
}

// attendWhole builds the attention of a part, [R, T, H*E], from that of whole rows with what they go on from. Merging
// parts by log(sum(exp)) would compute less, but the kernel has no gradient of that. Queries of what is shared are
// computed for each row again, and dropped. q is [1, M, H, E].
func (p *part) attendWhole(l selfAttention, q *Node, all KV) *Node {
	h, e, s := q.Shape().Dim(2), q.Shape().Dim(3), p.keys.Shape().Dim(1)
	rows := Reshape(Gather(Reshape(q, -1, h*e), p.keys), p.rows, s, h, e)
	y := p.kernel(rows, all, l.scale) // [R, S, H*E]
	position := Reshape(Slice(p.query, AxisRange(), AxisRange(), AxisElem(0)), p.rows, p.length)
	position = MinScalar(position, int32(s-1)) // padding may exceed it
	row := Iota(q.Graph(), shapeI32(p.rows, p.length), 0)
	return Gather(y, Stack([]*Node{row, position}, -1))
}

// slice builds the tokens of a part, [R, T, ...], of x [1, M, ...].
func (p *part) slice(x *Node) *Node {
	d := x.Shape().Dimensions
	own := Slice(x, AxisRange(), AxisRange(p.from, p.from+p.rows*p.length))
	return Reshape(own, p.rows, p.length, d[2], d[3])
}

// gather builds the keys or values of a part at their positions, [R, K, S, E], of x [1, M, K, E].
func (p *part) gather(x *Node) *Node {
	if p.keys == nil {
		return TransposeAllAxes(p.slice(x), 0, 2, 1, 3)
	}
	k, e, s := x.Shape().Dim(2), x.Shape().Dim(3), p.keys.Shape().Dim(1)
	rows := Gather(Reshape(x, -1, k*e), p.keys) // [R, S, K*E]
	return TransposeAllAxes(Reshape(rows, p.rows, s, k, e), 0, 2, 1, 3)
}
