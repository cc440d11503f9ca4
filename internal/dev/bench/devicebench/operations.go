package devicebench

import (
	"math"

	"github.com/gomlx/compute"
)

// The measured operations, as package model builds them. Shapes: x, y [R, C] are rows; weight [C]; cos, sin [R, E]
// with E the size of a head, C = H E.

// matmul returns a b [M, N] of a [M, K] and b [K, N].
func (g graph) matmul(a, b compute.Value) compute.Value {
	return must(g.f.DotGeneral(a, []int{1}, nil, b, []int{0}, nil, compute.DotGeneralConfig{}))
}

// matmulT is matmul with b as [N, K].
func (g graph) matmulT(a, b compute.Value) compute.Value {
	return must(g.f.DotGeneral(a, []int{1}, nil, b, []int{1}, nil, compute.DotGeneralConfig{}))
}

// perRow broadcasts one number per row to the shape [R, C].
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

// rope is, with the halves of each head x = [x1, x2], and cos and sin [R, E] that hold [cos, cos] and [-sin, sin],
//
//	[x1 cos - x2 sin, x2 cos + x1 sin] = x cos + [x2, x1] sin
func (g graph) rope(x, cos, sin compute.Value, rows, columns int) compute.Value {
	heads, half := columns/headSize, headSize/2
	halves := func(table compute.Value) compute.Value {
		table = must(g.f.Reshape(table, rows, 2, half))
		return must(g.f.BroadcastInDim(table, float32s(rows, heads, 2, half), []int{0, 2, 3}))
	}
	x = must(g.f.Reshape(x, rows, heads, 2, half))
	y := must(g.f.Add(must(g.f.Mul(x, halves(cos))), must(g.f.Mul(must(g.f.Reverse(x, 2)), halves(sin)))))
	return must(g.f.Reshape(y, rows, columns))
}

// adamW returns what an update writes over p, m and v. With t the number of the step, x ends with lr, c1 = 1 - beta1^t,
// c2 = 1 - beta2^t and clip:
//
//	g = clip grad, m' = beta1 m + (1 - beta1) g, v' = beta2 v + (1 - beta2) g^2
//	p' = p - lr ((m' / c1) / (sqrt(v' / c2) + 1e-8) + 0.1 p)
//
// as in the graph of package grpo, with beta1 = 0.9 and beta2 = 0.99.
func (g graph) adamW(x []compute.Value, rows, columns int) []compute.Value {
	all := func(x compute.Value) compute.Value { return must(g.f.BroadcastInDim(x, float32s(rows, columns), nil)) }
	c := func(x float64) compute.Value {
		one := must(g.f.Constant([]float32{float32(x)}))
		return all(must(g.f.Reshape(one)))
	}
	mul := func(a, b compute.Value) compute.Value { return must(g.f.Mul(a, b)) }
	add := func(a, b compute.Value) compute.Value { return must(g.f.Add(a, b)) }
	div := func(a, b compute.Value) compute.Value { return must(g.f.Div(a, b)) }
	p, m, v, grad, lr, c1, c2, clip := x[0], x[1], x[2], x[3], all(x[4]), all(x[5]), all(x[6]), all(x[7])
	grad = mul(grad, clip)
	m = add(mul(m, c(0.9)), mul(grad, c(0.1)))
	v = add(mul(v, c(0.99)), mul(mul(grad, grad), c(0.01)))
	step := div(div(m, c1), add(must(g.f.Sqrt(div(v, c2))), c(1e-8)))
	p = must(g.f.Sub(p, mul(lr, add(step, mul(p, c(0.1))))))
	return []compute.Value{p, m, v}
}

// flops is the number of additions and multiplications of a matmul.
func flops(m, k, n int) float64 { return math.Ldexp(float64(m)*float64(k)*float64(n), 1) }
