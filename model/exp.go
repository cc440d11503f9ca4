package model

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// The graph's own Exp and Logistic are not used: on the Go device they call math.Exp, whose assembly mixes SSE and AVX
// instructions. After one of the device's AVX-512 products, which leave the upper halves of the registers dirty, that
// costs 1,000 ns an element in place of 7 (docs/log.md, 2026-11-21). Expm1 is plain Go.

// exp is e^x for x <= 0, to an absolute error of 6e-8: what a sum of probabilities needs. It has no gradient; its
// callers give their own.
func exp(x *Node) *Node { return OnePlus(Expm1(StopGradient(x))) }

// softmax is over the last axis. With p its result and v the gradient that comes back, the gradient is
//
//	p (v - sum(p v))
func softmax(x *Node) *Node {
	e := exp(Sub(x, ReduceAndKeep(x, ReduceMax, -1)))
	p := Div(e, ReduceAndKeep(e, ReduceSum, -1))
	return withGradient(p, x, func(v *Node) *Node {
		return Mul(p, Sub(v, ReduceAndKeep(Mul(p, v), ReduceSum, -1)))
	})
}

// logSoftmax is over the last axis. With p the probabilities and v the gradient that comes back, the gradient is
//
//	v - p sum(v)
func logSoftmax(x *Node) *Node {
	z := StopGradient(Sub(x, ReduceAndKeep(x, ReduceMax, -1)))
	e := exp(z)
	sum := ReduceAndKeep(e, ReduceSum, -1)
	return withGradient(Sub(z, Log(sum)), x, func(v *Node) *Node {
		return Sub(v, Mul(Div(e, sum), ReduceAndKeep(v, ReduceSum, -1)))
	})
}

// silu is x s with s = 1 / (1 + e^-x) (Elfwing et al. 2017). Its gradient is
//
//	v s (1 + x (1 - s))
func silu(x *Node) *Node {
	s := StopGradient(Reciprocal(AddScalar(Expm1(Neg(StopGradient(x))), 2)))
	return withGradient(Mul(x, s), x, func(v *Node) *Node {
		return Mul(v, Mul(s, OnePlus(Mul(x, OneMinus(s)))))
	})
}

// withGradient returns y, exactly but for the sign of a zero, as a function of x whose gradient is given. x is finite.
func withGradient(y, x *Node, gradient func(v *Node) *Node) *Node {
	through := IdentityWithCustomGradient(x, func(_, v *Node) *Node { return gradient(v) })
	return Add(StopGradient(y), Sub(through, StopGradient(x)))
}
