package model

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	. "github.com/goart-dev/art/internal/graphx"
)

// Shape legend: see deltanet.go; N chunks of L tokens.

// deltaChunk is the most tokens of a chunk, a power of two.
const deltaChunk = 64

// chunked is the gated delta rule of chunks of tokens at once, in matmuls (Yang et al. 2024). With the tokens of a
// chunk numbered, S the state before it, D[i, j] the product of the decays of j+1 to i for i >= j and 0 elsewhere, g[i]
// that of all up to i, and A the part of diag(b) K Kᵀ ∘ D below the diagonal,
//
//	U = (1 + A)⁻¹ diag(b) V        W = (1 + A)⁻¹ diag(b g) K        E = U - W S
//	O = diag(g) Q S + (Q Kᵀ ∘ D) E        S after = g[L] S + (diag(D[L]) K)ᵀ E
//
// Only the two matmuls of E and S go from chunk to chunk. Padding has rate 0 and decay 1: it leaves the state alone.
func (r deltaRule) chunked() (o, state *Node) {
	g, dims := r.q.Graph(), r.v.Shape().Dimensions
	rows, tokens, heads, values := dims[0], dims[1], dims[2], dims[3]
	keys := r.k.Shape().Dim(3)
	real := LessThan(Iota(g, shapeI32(rows, tokens, heads), 1),
		BroadcastToDims(Reshape(r.pass.count, rows, 1, 1), rows, tokens, heads))
	decay := Where(real, r.logDecay, ZerosLike(r.logDecay))
	rate := Where(real, r.rate, ZerosLike(r.rate))
	length := 1
	for length < min(tokens, deltaChunk) {
		length *= 2
	}
	c := deltaChunks{length: length, count: (tokens + length - 1) / length}
	q, k, v := c.cut(perValueHead(r.q, heads)), c.cut(perValueHead(r.k, heads)), c.cut(r.v) // [B, H, N, L, ...]
	b := c.cut(ExpandAxes(rate, -1))                                                        // [B, H, N, L, 1]
	between, upTo := c.decays(c.cut(ExpandAxes(decay, -1)))
	product := func(x, y *Node) *Node { return Mul(c.transposedMul(x, y), between) }
	inverse := lowerInverse(Mul(Mul(product(k, k), b), c.below(g)))
	u, w := BatchMatMul(inverse, Mul(v, b)), BatchMatMul(inverse, Mul(k, Mul(b, upTo)))
	last := TransposeAllAxes(Slice(between, AxisRange(), AxisRange(), AxisRange(), AxisElem(-1)), 0, 1, 2, 4, 3)
	k = Mul(k, last)
	if state = r.state; state == nil {
		state = Zeros(g, shapes.Make(dtypes.Float32, rows, heads, keys, values))
	}
	var states, errors []*Node // before each chunk, and of its tokens
	for i := range c.count {
		at := func(x *Node) *Node { return Squeeze(Slice(x, AxisRange(), AxisRange(), AxisElem(i)), 2) }
		e := Sub(at(u), BatchMatMul(at(w), state))
		states, errors = append(states, ExpandAxes(state, 2)), append(errors, ExpandAxes(e, 2))
		decayed := Slice(at(upTo), AxisRange(), AxisRange(), AxisElem(-1)) // [B, H, 1, 1]
		state = Add(Mul(state, decayed), BatchMatMul(TransposeAllAxes(at(k), 0, 1, 3, 2), e))
	}
	o = Add(BatchMatMul(Mul(q, upTo), Concatenate(states, 2)), BatchMatMul(product(q, c.cut(perValueHead(r.k, heads))),
		Concatenate(errors, 2)))
	return c.join(o, tokens), state
}

// perValueHead repeats the heads of x [B, T, G, K] for those of values: [B, T, H, K].
func perValueHead(x *Node, heads int) *Node {
	d := x.Shape().Dimensions
	y := BroadcastToDims(ExpandAxes(x, 3), d[0], d[1], d[2], heads/d[2], d[3])
	return Reshape(y, d[0], d[1], heads, d[3])
}

// deltaChunks says how tokens are cut.
type deltaChunks struct{ length, count int }

// cut builds chunks of x [B, T, H, E], with zeros behind them: [B, H, N, L, E].
func (c deltaChunks) cut(x *Node) *Node {
	d := x.Shape().Dimensions
	if more := c.length*c.count - d[1]; more > 0 {
		x = Pad(x, ScalarZero(x.Graph(), x.DType()), PadAxis{}, PadAxis{End: more}, PadAxis{}, PadAxis{})
	}
	return TransposeAllAxes(Reshape(x, d[0], c.count, c.length, d[2], d[3]), 0, 3, 1, 2, 4)
}

// join is the reverse of cut.
func (c deltaChunks) join(x *Node, tokens int) *Node {
	d := x.Shape().Dimensions // [B, H, N, L, E]
	y := Reshape(TransposeAllAxes(x, 0, 2, 3, 1, 4), d[0], c.count*c.length, d[1], d[4])
	return Slice(y, AxisRange(), AxisRange(0, tokens))
}

// below is 1 below the diagonal, and 0 elsewhere: [1, 1, 1, L, L].
func (c deltaChunks) below(g *Graph) *Node { return c.triangle(g, GreaterThan) }

func (c deltaChunks) triangle(g *Graph, compare func(x, y *Node) *Node) *Node {
	s := shapeI32(c.length, c.length)
	y := ConvertDType(compare(Iota(g, s, 0), Iota(g, s, 1)), dtypes.Float32)
	return Reshape(y, 1, 1, 1, c.length, c.length)
}

// decays builds D [B, H, N, L, L], and the products up to each token, [B, H, N, L, 1], of the logarithms of decays
// [B, H, N, L, 1]. The sums are masked before the exponential: those above the diagonal are positive.
func (c deltaChunks) decays(log *Node) (between, upTo *Node) {
	g, d := log.Graph(), log.Shape().Dimensions
	all := []int{d[0], d[1], d[2], c.length, c.length}
	notBelow := c.triangle(g, GreaterOrEqual)
	sums := ReduceAndKeep(Mul(TransposeAllAxes(BroadcastToDims(log, all...), 0, 1, 2, 4, 3), notBelow), ReduceSum, -1)
	differences := Sub(BroadcastToDims(sums, all...), TransposeAllAxes(BroadcastToDims(sums, all...), 0, 1, 2, 4, 3))
	return Mul(Exp(Mul(differences, notBelow)), notBelow), Exp(sums)
}

// transposedMul builds x [..., L, E] times the transpose of y: [..., L, L].
func (c deltaChunks) transposedMul(x, y *Node) *Node {
	return BatchMatMul(x, TransposeAllAxes(y, 0, 1, 2, 4, 3))
}

// lowerInverse builds (1 + A)⁻¹ of A [..., L, L] whose elements on and above the diagonal are 0, L a power of two. It
// merges blocks of the diagonal by pairs: with their inverses X and Y, and C what is below X and beside Y,
//
//	[X⁻¹ 0; C Y⁻¹]⁻¹ = [X 0; -Y C X Y]
//
// With R the inverse, and v the incoming gradient, the gradient is -Rᵀ v Rᵀ.
func lowerInverse(a *Node) *Node {
	last := a.Rank() - 1
	axes := make([]int, last+1)
	for i := range axes {
		axes[i] = i
	}
	axes[last], axes[last-1] = last-1, last
	var y *Node
	return withGradient(a, func(a *Node) *Node {
		g, n := a.Graph(), a.Shape().Dim(-1)
		row, column := Iota(g, shapeI32(n, n), 0), Iota(g, shapeI32(n, n), 1)
		masked := func(x *Node) *Node {
			return ExpandLeftToRank(ConvertDType(x, dtypes.Float32), a.Rank())
		}
		y = BroadcastToDims(masked(Equal(row, column)), a.Shape().Dimensions...)
		for size := 1; size < n; size *= 2 {
			block := func(x *Node) *Node { return DivScalar(x, int32(size)) }
			pair := func(x *Node) *Node { return DivScalar(x, int32(2*size)) }
			merged := LogicalAnd(Equal(pair(row), pair(column)), GreaterThan(block(row), block(column)))
			y = Sub(y, BatchMatMul(BatchMatMul(y, Mul(a, masked(merged))), y))
		}
		return y
	}, func(v *Node) *Node {
		t := TransposeAllAxes(y, axes...)
		return Neg(BatchMatMul(BatchMatMul(t, v), t))
	})
}
