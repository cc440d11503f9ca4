package lora

// Shapes: M rows of x, In and Out sizes of the layer, R rank, P adapters (one for each of P equal blocks of rows).

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	. "github.com/goart-dev/art/internal/graphx"
)

// hook returns what [Adapter.Hooks] does for linear layers without DoRA. params returns the matrices of a layer, and
// ok = false for one without an adapter.
func (c Config) hook(
	params func(name string) (a, b *Node, ok bool),
) func(x *Node, name string, base func(*Node) *Node) *Node {
	return func(x *Node, name string, base func(*Node) *Node) *Node {
		y := base(x)
		a, b, ok := params(name)
		if !ok {
			return y
		}
		delta := c.delta(x, name, a, b)
		return Add(y, Reshape(convert(delta, y.DType()), y.Shape().Dimensions...))
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
		x = Reshape(x, -1, in) // [M, In]
	case 3:
		p := a.Shape().Dim(0)
		a.AssertDims(p, in, rank)
		b.AssertDims(p, rank, out)
		x = Reshape(x, p, -1, in) // [P, M/P, In]
	default:
		panic(fmt.Errorf("lora: the adapter of %q has shape %s, want [In, Rank] or [P, In, Rank]", name, a.Shape()))
	}
	down := BatchMatMul(x, a) // [..., R]
	return BatchMatMul(scaled(down, scale), b)
}

// embeddingHook is hook of the embedding.
func (c Config) embeddingHook(
	params func(name string) (a, b *Node, ok bool),
) func(ids *Node, name string, x *Node) *Node {
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
