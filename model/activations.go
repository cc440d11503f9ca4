package model

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// The gradients of the functions below are written down, not derived from what they are made of: that takes fewer passes
// over the data, and none through an exponential.

// softmax is over the last axis. With p its result and v the gradient that comes back, the gradient is
//
//	p (v - sum(p v))
func softmax(x *Node) *Node {
	z := StopGradient(x)
	e := Exp(Sub(z, ReduceAndKeep(z, ReduceMax, -1)))
	p := Div(e, ReduceAndKeep(e, ReduceSum, -1))
	return withGradient(p, x, func(v *Node) *Node {
		return Mul(p, Sub(v, ReduceAndKeep(Mul(p, v), ReduceSum, -1)))
	})
}

// logSoftmax is over the last axis. With p the probabilities and v the gradient that comes back, the gradient is
//
//	v - p sum(v)
func logSoftmax(x *Node) *Node {
	z := StopGradient(x)
	z = Sub(z, ReduceAndKeep(z, ReduceMax, -1))
	e := Exp(z)
	sum := ReduceAndKeep(e, ReduceSum, -1)
	return withGradient(Sub(z, Log(sum)), x, func(v *Node) *Node {
		return Sub(v, Mul(Div(e, sum), ReduceAndKeep(v, ReduceSum, -1)))
	})
}

// silu is x s with s = 1 / (1 + e^-x) (Elfwing et al. 2017). Its gradient is
//
//	v s (1 + x (1 - s))
func silu(x *Node) *Node {
	s := Logistic(StopGradient(x))
	return withGradient(Mul(x, s), x, func(v *Node) *Node {
		return Mul(v, Mul(s, OnePlus(Mul(x, OneMinus(s)))))
	})
}

// withGradient returns y, exactly but for the sign of a zero, as a function of x whose gradient is given. x is finite.
func withGradient(y, x *Node, gradient func(v *Node) *Node) *Node {
	through := IdentityWithCustomGradient(x, func(_, v *Node) *Node { return gradient(v) })
	return Add(StopGradient(y), Sub(through, StopGradient(x)))
}
