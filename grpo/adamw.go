package grpo

// Shapes: [...] any, the same for a parameter, its gradient and its moments. [] is a scalar.

import (
	"errors"
	"fmt"
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
)

// AdamWState is what an update changes: parameters and their first and second moments, which start at 0.
type AdamWState struct {
	Params, M, V []*Node // each [...]
}

// Nodes returns parameters, first and second moments, in this order.
func (s AdamWState) Nodes() []*Node { return slices.Concat(s.Params, s.M, s.V) }

// Step builds one update. grads belong to state.Params, one each; scalars is [NumScalars], from [AdamW.Scalars].
//
// norm is the global norm of grads before clipping. When it is not finite the state stays bit for bit the same, and the
// caller must not count the step.
func (c AdamW) Step(state AdamWState, grads []*Node, scalars *Node) (next AdamWState, norm *Node) {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	n := len(grads)
	if len(state.Params) != n || len(state.M) != n || len(state.V) != n {
		panic(fmt.Errorf("grpo: adamw has %d gradients for %d parameters and %d and %d moments",
			n, len(state.Params), len(state.M), len(state.V)))
	}
	norm = GlobalNorm(grads)
	scale, keep := clipScale(norm, c.MaxGradNorm), IsFinite(norm)
	for i := range grads {
		p, m, v := c.update(state.Params[i], grads[i], state.M[i], state.V[i], scalars, scale)
		next.Params = append(next.Params, Where(keep, p, state.Params[i]))
		next.M = append(next.M, Where(keep, m, state.M[i]))
		next.V = append(next.V, Where(keep, v, state.V[i]))
	}
	return next, norm
}

// update builds the update of one parameter. With t the number of the step,
//
//	g  = clip·grad
//	m' = Beta1·m + (1-Beta1)·g
//	v' = Beta2·v + (1-Beta2)·g²
//	p' = p - lr·( (m'/(1-Beta1^t)) / (sqrt(v'/(1-Beta2^t)) + Eps) + WeightDecay·p )
//
// param, grad, m and v have one shape; scalars is [NumScalars], from [AdamW.Scalars]; clip is a scalar.
//
// Source: AdamW (Loshchilov and Hutter 2019, https://arxiv.org/abs/1711.05101), as torch.optim.AdamW.
func (c AdamW) update(param, grad, m, v, scalars, clip *Node) (newParam, newM, newV *Node) {
	for _, x := range []*Node{grad, m, v} {
		x.AssertDims(param.Shape().Dimensions...)
	}
	scalars.AssertDims(NumScalars)
	clip.AssertScalar()
	lr, correction1, correction2 := element(scalars, 0), element(scalars, 1), element(scalars, 2) // []

	g := Mul(grad, clip)
	newM = Add(MulScalar(m, c.Beta1), MulScalar(g, 1-c.Beta1))
	newV = Add(MulScalar(v, c.Beta2), MulScalar(Mul(g, g), 1-c.Beta2))
	step := Div(Div(newM, correction1), AddScalar(Sqrt(Div(newV, correction2)), c.Eps))
	if c.WeightDecay != 0 {
		step = Add(step, MulScalar(param, c.WeightDecay))
	}
	return Sub(param, Mul(lr, step)), newM, newV
}

// GlobalNorm builds the Euclidean norm [] of all gradients taken as one vector,
//
//	sqrt(Σ g²)
//
// It is not finite when a gradient is not, and when the sum of squares overflows (in float32, a norm above 1.8e19).
func GlobalNorm(grads []*Node) *Node {
	if len(grads) == 0 {
		panic(fmt.Errorf("grpo: the norm of no gradients"))
	}
	sum := ReduceAllSum(Mul(grads[0], grads[0]))
	for _, g := range grads[1:] {
		sum = Add(sum, ReduceAllSum(Mul(g, g)))
	}
	return Sqrt(sum)
}

// clipScale builds what gradients of the given global norm [] are multiplied by,
//
//	min(1, maxNorm / (norm + 1e-6))
//
// and 1 when maxNorm is not above 0. Source: torch.nn.utils.clip_grad_norm_.
func clipScale(norm *Node, maxNorm float64) *Node {
	norm.AssertScalar()
	one := ScalarOne(norm.Graph(), norm.DType())
	if maxNorm <= 0 {
		return one
	}
	return Min(one, Div(MulScalar(one, maxNorm), AddScalar(norm, 1e-6)))
}

func element(x *Node, i int) *Node { return Reshape(Slice(x, AxisRange(i, i+1))) }

// AdamW is the configuration of the optimizer. Zero is a legal value of every field but Eps, so start from
// [DefaultAdamW].
type AdamW struct {
	Beta1, Beta2 float64 // decay of the first and second moment per step, in [0, 1)
	Eps          float64 // added to the square root of the second moment, above 0
	WeightDecay  float64 // decoupled: fraction of a parameter that a step subtracts, times the learning rate
	MaxGradNorm  float64 // bound of the global norm of the gradient; 0 or negative is off
}

// DefaultAdamW returns ART's settings for RL: betas 0.9 and 0.99, eps 1e-8, weight decay 0.1, gradient norm 0.1.
func DefaultAdamW() AdamW {
	return AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 0.1}
}

// Validate lists every problem.
func (c AdamW) Validate() error {
	var errs []error
	check := func(ok bool, name string, value float64, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("grpo: adamw %s is %v, it must be %s", name, value, want))
		}
	}
	check(c.Beta1 >= 0 && c.Beta1 < 1, "beta1", c.Beta1, "in [0, 1)")
	check(c.Beta2 >= 0 && c.Beta2 < 1, "beta2", c.Beta2, "in [0, 1)")
	check(c.Eps > 0 && finite(c.Eps), "eps", c.Eps, "above 0")
	check(c.WeightDecay >= 0 && finite(c.WeightDecay), "weight decay", c.WeightDecay, "finite and not negative")
	check(finite(c.MaxGradNorm), "max grad norm", c.MaxGradNorm, "finite")
	return errors.Join(errs...)
}

// NumScalars is the length of [AdamW.Scalars].
const NumScalars = 3

// Scalars returns what changes from step to step, the [NumScalars] input of [AdamW.Step]:
//
//	lr, 1 - Beta1^step, 1 - Beta2^step
//
// step counts from 1 and is the number of updates made, this one included; a skipped update does not count. The powers
// are computed here because float32 would lose four digits of 1 - Beta2^step.
func (c AdamW) Scalars(step int, lr float64) []float32 {
	t := float64(step)
	return []float32{float32(lr), float32(1 - math.Pow(c.Beta1, t)), float32(1 - math.Pow(c.Beta2, t))}
}
