package model

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
)

// The gradients of the functions below are closed forms rather than derived by autodiff: they take fewer passes over
// the data, and none through an exponential.

// softmax is over the last axis. With p its result and v the incoming gradient, the gradient is
//
//	p (v - sum(p v))
func softmax(x *Node) *Node {
	var p *Node
	return withGradient(x, func(x *Node) *Node {
		p = probabilities(x)
		return p
	}, func(v *Node) *Node { return softmaxGradient(p, v) })
}

func probabilities(x *Node) *Node {
	e := Exp(Sub(x, ReduceAndKeep(x, ReduceMax, -1)))
	return Div(e, ReduceAndKeep(e, ReduceSum, -1))
}

func softmaxGradient(p, v *Node) *Node {
	return Mul(p, Sub(v, ReduceAndKeep(Mul(p, v), ReduceSum, -1)))
}

// maskedSoftmax is the softmax over the elements for which seen, of the shape of x, is true. The others have no weight
// and no gradient; where a row has none, all elements have the same weight.
//
// The incoming gradient is masked rather than the outgoing one. Both give the same numbers, since p is 0 there, and v
// is a matmul, of which the device then need not compute the masked elements.
func maskedSoftmax(x, seen *Node) *Node {
	var p *Node
	return withGradient(x, func(x *Node) *Node {
		p = probabilities(Where(seen, x, Scalar(x.Graph(), x.DType(), masked)))
		return p
	}, func(v *Node) *Node { return softmaxGradient(p, Where(seen, v, ScalarZero(v.Graph(), v.DType()))) })
}

// masked replaces minus infinity: its exponential is exactly zero, and its gradient is not NaN.
const masked = -1e30

// logSoftmax is over the last axis. With p the probabilities and v the incoming gradient, the gradient is
//
//	v - p sum(v)
func logSoftmax(x *Node) *Node {
	var e, sum *Node
	return withGradient(x, func(x *Node) *Node {
		z := Sub(x, ReduceAndKeep(x, ReduceMax, -1))
		e = Exp(z)
		sum = ReduceAndKeep(e, ReduceSum, -1)
		return Sub(z, Log(sum))
	}, func(v *Node) *Node {
		return Sub(v, Mul(Div(e, sum), ReduceAndKeep(v, ReduceSum, -1)))
	})
}

// activation builds an elementwise function, and its slope: the number that the gradient is multiplied by.
type activation func(x *Node) (y, slope *Node)

// silu is x s with s = 1 / (1 + e^-x) (Elfwing et al. 2017). Its slope is
//
//	s (1 + x (1 - s))
func silu(x *Node) (y, slope *Node) {
	s := Logistic(x)
	return Mul(x, s), Mul(s, OnePlus(Mul(x, OneMinus(s))))
}

// geluTanh is x (1 + t) / 2 with t = tanh(u), u = k (x + c x³), k = sqrt(2/pi) and c = 0.044715, an approximation of x
// Φ(x) (Hendrycks and Gimpel 2016). Its slope is
//
//	((1 + t) + x (1 - t²) k (1 + 3c x²)) / 2
func geluTanh(x *Node) (y, slope *Node) {
	const c = 0.044715
	k := math.Sqrt(2 / math.Pi)
	t := Tanh(MulScalar(Mul(x, OnePlus(MulScalar(Mul(x, x), c))), k))
	inner := MulScalar(OnePlus(MulScalar(Mul(x, x), 3*c)), k)
	slope = MulScalar(Add(OnePlus(t), Mul(x, Mul(OneMinus(Mul(t, t)), inner))), 0.5)
	return Mul(x, MulScalar(OnePlus(t), 0.5)), slope
}

// gated builds a(gate) * up. Its gradient computes the activation again, from the gate: a pass keeps one tensor less.
func gated(a activation, gate, up *Node) *Node {
	return withGradients([]*Node{gate, up}, func() *Node {
		y, _ := a(gate)
		return Mul(y, up)
	}, func(v *Node) []*Node {
		y, slope := a(SchedulingBarrier(gate, v)) // not before its turn
		ofUp := Mul(y, v)
		return []*Node{Mul(Mul(v, up), slope), ofUp}
	})
}

// withGradient returns f(x) with a custom gradient: gradient maps that of f(x) to that of x. It makes f(x) the fused
// form of a node that has this gradient, as GoMLX does for operations that a device has fused. With GoMLX's fusion
// switched off, the gradient is derived from f.
func withGradient(x *Node, f, gradient func(*Node) *Node) *Node {
	y, fused := InternalFusedOpCaller(
		func() *Node { return f(x) },
		func() *Node {
			return IdentityWithCustomGradient(x, func(_, v *Node) *Node { return gradient(v) })
		}, true)
	if !fused {
		return f(x)
	}
	return y
}

// withGradients is withGradient of a function of several nodes, of any shapes: gradient maps the gradient of the output
// to theirs.
//
// GoMLX knows custom gradients of one node. So what stands for f in a gradient is a sum of all nodes, never computed:
// on the way back its gradient is dropped, and each node gets its own.
func withGradients(in []*Node, f func() *Node, gradient func(v *Node) []*Node) *Node {
	var list []*Node
	y, fused := InternalFusedOpCaller(f, func() *Node {
		sum := ScalarZero(in[0].Graph(), in[0].DType())
		for i, x := range in {
			sum = Add(sum, ReduceAllSum(IdentityWithCustomGradient(x, func(_, _ *Node) *Node { return list[i] })))
		}
		return IdentityWithCustomGradient(sum, func(_, v *Node) *Node {
			list = gradient(v)
			return ScalarOne(v.Graph(), v.DType())
		})
	}, true)
	if !fused {
		return f()
	}
	return y
}
