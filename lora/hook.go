package lora

// Shapes: M rows of x, In and Out sizes of the layer, R rank, P adapters (one for each of P equal blocks of rows).

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	. "github.com/goart-dev/art/internal/graphx"
)

// Hook returns the function that a model calls for each of its linear layers: x is [..., In], base builds the frozen
// layer, name is its full name. params returns the matrices of a layer as nodes, in the layout of [Adapter.Params], and
// ok = false for a layer without an adapter, for which the hook builds base(x). Otherwise it builds
//
//	y = base(x) + (Scale·(x·a))·b        a [In, Rank], b [Rank, Out]
//
// With b = 0 this is base(x) bit for bit, except that -0 becomes 0.
//
// For several adapters at once a may be [P, In, Rank] and b [P, Rank, Out]: the rows of x, flattened, are P blocks of
// equal size, and block p gets adapter p. With x [B, T, In] and P = B that is an adapter for each sequence.
//
// The adapter is computed in the dtype of a and b, and converted to that of base(x). With DoRA it panics: see
// [Adapter.Hooks].
func (c Config) Hook(
	params func(name string) (a, b *Node, ok bool),
) func(x *Node, name string, base func(*Node) *Node) *Node {
	c.refuseDoRA()
	return func(x *Node, name string, base func(*Node) *Node) *Node {
		a, b, ok := params(name)
		if !ok {
			return base(x)
		}
		y := base(x)
		delta := c.delta(x, name, a, b)
		return Add(y, Reshape(convert(delta, y.DType()), y.Shape().Dimensions...))
	}
}

// refuseDoRA panics where there are no magnitudes.
func (c Config) refuseDoRA() {
	if c.DoRA {
		panic(errors.New("lora: the hooks of a configuration have no magnitudes: use Adapter.Hooks for DoRA"))
	}
}

// delta builds Scale·x·a·b, [M, Out] or [P, M/P, Out].
func (c Config) delta(x *Node, name string, a, b *Node) *Node {
	in, rank, out, scale := x.Shape().Dim(-1), c.LayerRank(name), b.Shape().Dim(-1), c.Scale(name)
	x = convert(x, a.DType())
	switch a.Rank() {
	case 2:
		a.AssertDims(in, rank)
		b.AssertDims(rank, out)
		x = Reshape(x, -1, in)                     // [M, In]
		down := BatchMatMul(x, a)                  // [M, R]
		return BatchMatMul(scaled(down, scale), b) // [M, Out]
	case 3:
		p := a.Shape().Dim(0)
		a.AssertDims(p, in, rank)
		b.AssertDims(p, rank, out)
		x = Reshape(x, p, -1, in)                  // [P, M/P, In]
		down := BatchMatMul(x, a)                  // [P, M/P, R]
		return BatchMatMul(scaled(down, scale), b) // [P, M/P, Out]
	}
	panic(fmt.Errorf("lora: the adapter of %q has shape %s, want [In, Rank] or [P, In, Rank]", name, a.Shape()))
}

// EmbeddingHook returns the function that a model calls for its embedding: ids are [..., 1], int32, x [..., Out] is
// what the base model looks up. params is that of [Config.Hook]. With an adapter it builds
//
//	y = x + Scale·a[ids]·b               a [In, Rank], b [Rank, Out]
func (c Config) EmbeddingHook(
	params func(name string) (a, b *Node, ok bool),
) func(ids *Node, name string, x *Node) *Node {
	c.refuseDoRA()
	return func(ids *Node, name string, x *Node) *Node {
		a, b, ok := params(name)
		if !ok {
			return x
		}
		rank := c.LayerRank(name)
		a.AssertDims(-1, rank)
		b.AssertDims(rank, x.Shape().Dim(-1))
		rows := Reshape(Gather(a, ids), -1, rank) // [M, R]
		delta := BatchMatMul(scaled(rows, c.Scale(name)), b)
		return Add(x, Reshape(convert(delta, x.DType()), x.Shape().Dimensions...))
	}
}

// scaled builds scale·x.
func scaled(x *Node, scale float64) *Node {
	if scale == 1 {
		return x
	}
	return MulScalar(x, scale)
}

// convert builds x in another dtype.
func convert(x *Node, dtype dtypes.DType) *Node {
	if x.DType() == dtype {
		return x
	}
	return ConvertDType(x, dtype)
}
