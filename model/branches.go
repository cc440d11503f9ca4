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

// join builds the attention of each part, and joins what they make: [1, M, H*E]. q is [1, M, H, E], and keys and values
// are [1, M, K, E].
func (a *attention) join(q *Node, fresh KV, attend func(p *part, q *Node, kv KV) *Node) *Node {
	var list []*Node
	for _, p := range a.parts {
		y := attend(p, p.slice(q), KV{K: p.gather(fresh.K), V: p.gather(fresh.V)})
		list = append(list, Reshape(y, 1, p.rows*p.length, -1))
	}
	return Concatenate(list, 1)
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
