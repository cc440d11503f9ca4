package main

import (
	"math"

	"github.com/gomlx/compute"
)

// The operations that are measured, as the model writes them. Shapes: x, y [R, C] are rows; weight [C]; cos, sin [R, E/2]
// with E the size of a head, C = H E.

// product returns a b [M, N] of a [M, K] and b [K, N].
func (g graph) product(a, b compute.Value) compute.Value {
	return must(g.f.DotGeneral(a, []int{1}, nil, b, []int{0}, nil, compute.DotGeneralConfig{}))
}

// productT is product with b as [N, K].
func (g graph) productT(a, b compute.Value) compute.Value {
	return must(g.f.DotGeneral(a, []int{1}, nil, b, []int{1}, nil, compute.DotGeneralConfig{}))
}

// perRow repeats one number a row to the shape [R, C].
func (g graph) perRow(x compute.Value, rows, columns int) compute.Value {
	return must(g.f.BroadcastInDim(x, float32s(rows, columns), []int{0}))
}

// number is a tensor of one value.
func (g graph) number(v float64, rows int) compute.Value {
	c := must(g.f.Constant([]float32{float32(v)}))
	return must(g.f.BroadcastInDim(c, float32s(rows), nil))
}

// softmax is e^(x - max x) / sum e^(x - max x).
func (g graph) softmax(x compute.Value, rows, columns int) compute.Value {
	e := must(g.f.Exp(must(g.f.Sub(x, g.perRow(must(g.f.ReduceMax(x, 1)), rows, columns)))))
	return must(g.f.Div(e, g.perRow(must(g.f.ReduceSum(e, 1)), rows, columns)))
}

// rmsNorm is x / sqrt(mean x^2 + 1e-6) * weight.
func (g graph) rmsNorm(x, weight compute.Value, rows, columns int) compute.Value {
	sum := must(g.f.ReduceSum(must(g.f.Mul(x, x)), 1))
	mean := must(g.f.Mul(sum, g.number(1/float64(columns), rows)))
	scale := must(g.f.Sqrt(must(g.f.Add(mean, g.number(1e-6, rows)))))
	w := must(g.f.BroadcastInDim(weight, float32s(rows, columns), []int{1}))
	return must(g.f.Mul(must(g.f.Div(x, g.perRow(scale, rows, columns))), w))
}

// swiGLU is x sigmoid(x) y.
func (g graph) swiGLU(x, y compute.Value) compute.Value {
	return must(g.f.Mul(must(g.f.Mul(x, must(g.f.Logistic(x)))), y))
}

// headSize is E.
const headSize = 64

// rope is, with the halves of each head x = [x1, x2],
//
//	[x1 cos - x2 sin, x2 cos + x1 sin]
func (g graph) rope(x, cos, sin compute.Value, rows, columns int) compute.Value {
	heads, half := columns/headSize, headSize/2
	x = must(g.f.Reshape(x, rows, heads, headSize))
	part := func(from int) compute.Value {
		return must(g.f.Slice(x, []int{0, 0, from}, []int{rows, heads, from + half}, []int{1, 1, 1}))
	}
	x1, x2 := part(0), part(half)
	c := must(g.f.BroadcastInDim(cos, float32s(rows, heads, half), []int{0, 2}))
	s := must(g.f.BroadcastInDim(sin, float32s(rows, heads, half), []int{0, 2}))
	y := must(g.f.Concatenate(2,
		must(g.f.Sub(must(g.f.Mul(x1, c)), must(g.f.Mul(x2, s)))),
		must(g.f.Add(must(g.f.Mul(x2, c)), must(g.f.Mul(x1, s))))))
	return must(g.f.Reshape(y, rows, columns))
}

// flops is the number of additions and multiplications of a product.
func flops(m, k, n int) float64 { return math.Ldexp(float64(m)*float64(k)*float64(n), 1) }
