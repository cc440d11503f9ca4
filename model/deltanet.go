package model

import (
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	. "github.com/goart-dev/art/internal/graphx"
)

// Shape legend: B rows, T tokens, G key heads, H value heads, K numbers of a key, V of a value, C = 2 G K + H V
// channels of a convolution over W tokens, P slots.

// deltaNet is a mixer without attention: a gated delta net (Yang et al. 2024, https://arxiv.org/abs/2412.06464), as
// Qwen3-Next and Qwen3.5 have it. Of what a row has read it remembers a window of W - 1 tokens and a state of H K V
// numbers, however long it is.
type deltaNet struct {
	keyHeads, valueHeads int  // G and H
	keyDim, valueDim     int  // K and V
	kernel               int  // W
	grouped              bool // projections are fused by key head: in_proj_qkvz and in_proj_ba
}

// deltaPast is what rows remember of earlier tokens: of each row, [B, ...], or in slots, [P, ...].
type deltaPast struct {
	Window *Node // [B or P, W-1, C]: inputs of the convolution, the newest last
	State  *Node // [B or P, H, K, V]
}

// deltaPass is what the layers of a pass share.
type deltaPass struct {
	// count is [B] int32: tokens of each row that are no padding, which is on the right.
	count *Node
	// from and to are [B] int32: the slot that a row reads, and the one that it writes. Rows that write may share theirs
	// with nobody; a row without tokens copies. nil: there are no slots.
	from, to *Node
}

func (n *deltaNet) channels() int { return 2*n.keyHeads*n.keyDim + n.valueHeads*n.valueDim }

// build builds the mixer of x [B, T, D]: [B, T, D], and what the rows remember then. past is nil where all rows begin
// with their first token.
func (n *deltaNet) build(f *Forward, p string, pass deltaPass, x *Node, past *deltaPast) (*Node, deltaPast) {
	mixed, z, b, a := n.project(f, x, p)
	window, state := (*Node)(nil), (*Node)(nil)
	if past != nil {
		window, state = past.Window, past.State
	}
	var next deltaPast
	mixed, next.Window = n.convolve(mixed, float32s(f.Param(p+"conv1d.weight")), window, pass)
	rows, tokens := x.Shape().Dim(0), x.Shape().Dim(1)
	keys := n.keyHeads * n.keyDim
	split := func(from, heads, dim int) *Node {
		return Reshape(Slice(mixed, AxisRange(), AxisRange(), AxisRange(from, from+heads*dim)), rows, tokens, heads, dim)
	}
	rule := deltaRule{
		q: unit(split(0, n.keyHeads, n.keyDim), n.keyDim), k: unit(split(keys, n.keyHeads, n.keyDim), 1),
		v: split(2*keys, n.valueHeads, n.valueDim), rate: Logistic(b),
		logDecay: logDecay(a, float32s(f.Param(p+"A_log")), float32s(f.Param(p+"dt_bias"))),
		pass:     pass, state: state,
	}
	y, state := rule.build()
	next.State = state
	y = f.gatedNorm(y, Reshape(z, rows, tokens, n.valueHeads, n.valueDim), p+"norm.weight")
	return linear{name: "out_proj"}.build(f, Reshape(y, rows, tokens, -1), p), next
}

// project builds the projections of x: channels [B, T, C] with all queries first, then keys, then values; gates
// [B, T, H V]; and [B, T, H] twice, from which rates and decays are computed.
func (n *deltaNet) project(f *Forward, x *Node, p string) (mixed, z, b, a *Node) {
	if !n.grouped {
		of := func(name string) *Node { return linear{name: name}.build(f, x, p) }
		return of("in_proj_qkv"), of("in_proj_z"), of("in_proj_b"), of("in_proj_a")
	}
	rows, tokens, each := x.Shape().Dim(0), x.Shape().Dim(1), n.valueHeads/n.keyHeads
	parts := func(name string, sizes ...int) (list []*Node) {
		y := Reshape(linear{name: name}.build(f, x, p), rows, tokens, n.keyHeads, -1)
		at := 0
		for _, size := range sizes {
			part := Slice(y, AxisRange(), AxisRange(), AxisRange(), AxisRange(at, at+size))
			list, at = append(list, Reshape(part, rows, tokens, n.keyHeads*size)), at+size
		}
		return list
	}
	qkvz := parts("in_proj_qkvz", n.keyDim, n.keyDim, each*n.valueDim, each*n.valueDim)
	ba := parts("in_proj_ba", each, each)
	return Concatenate(qkvz[:3], -1), qkvz[3], ba[0], ba[1]
}

// unit builds vectors of the length sqrt(1/dim), along the last axis of x:
//
//	x / sqrt(sum(x²) + 1e-6) / sqrt(dim)
func unit(x *Node, dim int) *Node {
	sum := ReduceAndKeep(Mul(x, x), ReduceSum, -1)
	return Div(x, Sqrt(MulScalar(AddScalar(sum, 1e-6), float64(dim))))
}

// logDecay builds the logarithm of the decays of x [B, T, H]: -exp(rate) softplus(x + bias), with rate and bias [H].
func logDecay(x, rate, bias *Node) *Node {
	soft := softplus(Add(x, ExpandLeftToRank(bias, 3)))
	return Neg(Mul(soft, ExpandLeftToRank(Exp(rate), 3)))
}

// softplus is log(1 + e^x). Its slope is the logistic function.
func softplus(x *Node) *Node {
	return withGradient(x, func(x *Node) *Node {
		return Add(MaxScalar(x, 0), Log1P(Exp(Neg(Abs(x)))))
	}, func(v *Node) *Node { return Mul(v, Logistic(x)) })
}

// gatedNorm is RMSNorm of x [B, T, H, V] over the values of each head, times w [V] and silu(gate).
func (f *Forward) gatedNorm(x, gate *Node, name string) *Node {
	mean := MulScalar(ReduceAndKeep(Mul(x, x), ReduceSum, -1), 1/float64(x.Shape().Dim(-1)))
	y := Mul(Div(x, Sqrt(AddScalar(mean, f.Config.RMSNormEps))), ExpandLeftToRank(float32s(f.Param(name)), 4))
	return gated(silu, gate, y)
}

// convolve builds the causal convolution of each channel of x [B, T, C] with w [C, 1, W], and silu:
//
//	y[t] = silu(sum over i < W of w[i] x[t - (W-1) + i])
//
// where x goes on from a window, nil for zeros, or a slot. It also returns the window, or slots, behind the last token.
func (n *deltaNet) convolve(x, w, window *Node, pass deltaPass) (y, next *Node) {
	g, rows, channels := x.Graph(), x.Shape().Dim(0), x.Shape().Dim(2)
	w.AssertDims(channels, 1, n.kernel)
	before, kept := window, n.kernel-1
	switch {
	case window == nil:
		before = Zeros(g, shapes.Make(x.DType(), rows, kept, channels))
	case pass.from != nil:
		before = Gather(window, ExpandAxes(pass.from, -1))
	}
	all := Concatenate([]*Node{before, x}, 1) // [B, W-1+T, C]
	y = convolution(all, w)
	at := Add(BroadcastToDims(Reshape(pass.count, rows, 1), rows, kept), Iota(g, shapeI32(rows, kept), 1))
	next = Gather(all, Stack([]*Node{Iota(g, shapeI32(rows, kept), 0), at}, -1))
	if window != nil && pass.to != nil {
		next = intoSlots(window, pass.to, next)
	}
	return y, next
}

// convolution is that of convolve over x [B, W-1+T, C]. Its gradient computes the sums again.
func convolution(x, w *Node) *Node {
	kernel := w.Shape().Dim(2)
	tokens := x.Shape().Dim(1) - kernel + 1
	tap := func(i int) *Node {
		return Reshape(Slice(w, AxisRange(), AxisRange(), AxisElem(i)), 1, 1, -1)
	}
	from := func(x *Node, i, n int) *Node { return Slice(x, AxisRange(), AxisRange(i, i+n)) }
	sums := func() (sum *Node) {
		for i := range kernel {
			sum = plus(sum, Mul(from(x, i, tokens), tap(i)))
		}
		return sum
	}
	return withGradients([]*Node{x, w}, func() *Node {
		y, _ := silu(sums())
		return y
	}, func(v *Node) []*Node {
		x = SchedulingBarrier(x, v) // not before its turn
		_, slope := silu(sums())
		v = Mul(v, slope)
		pad := PadAxis{Start: kernel - 1, End: kernel - 1}
		padded := Pad(v, ScalarZero(v.Graph(), v.DType()), PadAxis{}, pad, PadAxis{})
		var ofX *Node
		var ofTaps []*Node
		for i := range kernel {
			ofX = plus(ofX, Mul(from(padded, kernel-1-i, tokens+kernel-1), tap(i)))
			ofTaps = append(ofTaps, Reshape(ReduceSum(Mul(v, from(x, i, tokens)), 0, 1), -1, 1, 1))
		}
		return []*Node{ofX, Concatenate(ofTaps, 2)}
	})
}

// intoSlots builds slots [P, ...] with those at numbers [B] replaced: minus infinity is the smaller, and a new number
// the greater one.
func intoSlots(slots, numbers, rows *Node) *Node {
	at := ExpandAxes(numbers, -1)
	low := BroadcastToDims(Infinity(rows.Graph(), rows.DType(), -1), rows.Shape().Dimensions...)
	return ScatterMax(ScatterMin(slots, at, low, false, false), at, rows, false, false)
}

// deltaRule is the gated delta rule. With S the state [K, V] of a head, and of a token query q, key k, value v, decay a
// and rate b,
//
//	d = b (v - a Sᵀk)        S = a S + k dᵀ        o = Sᵀq
//
// A device that has it as an operation computes this token by token, so that the numbers of a sequence do not depend on
// where it is cut. Others compute many tokens in chunks: see chunked. Value head h has key head h / (H / G).
type deltaRule struct {
	q, k, v        *Node // [B, T, G, K] twice, [B, T, H, V]
	logDecay, rate *Node // [B, T, H]
	pass           deltaPass
	state          *Node // [B or P, H, K, V]; nil for zeros
}

// Names of the operations of a device.
const (
	deltaRuleName         = "gated_delta_rule"
	deltaRuleGradientName = "gated_delta_rule_gradient"
)

// build returns o [B, T, H, V], of padding any numbers, and the states then, [B or P, H, K, V].
func (r deltaRule) build() (o, state *Node) {
	g := r.q.Graph()
	slots := r.state != nil && r.pass.from != nil
	switch {
	case HasOperation(g.Backend(), deltaRuleName) && slots:
		in := []*Node{r.q, r.k, r.v, Exp(r.logDecay), r.rate, r.pass.count, r.state, r.pass.from, r.pass.to}
		y := Operation(deltaRuleName, []shapes.Shape{r.v.Shape(), r.state.Shape()}, in...)
		return y[0], y[1]
	case HasOperation(g.Backend(), deltaRuleName):
		return r.operation()
	}
	all := r.state
	if slots {
		r.state = Gather(all, ExpandAxes(r.pass.from, -1))
	}
	o, state = r.chunked()
	if slots {
		state = intoSlots(all, r.pass.to, state)
	}
	return o, state
}

// operation is that of the device, with the gradient that the device has.
func (r deltaRule) operation() (o, state *Node) {
	d := r.v.Shape().Dimensions
	keys := r.k.Shape().Dim(3)
	states := shapes.Make(dtypes.Float32, d[0], d[2], keys, d[3])
	in := []*Node{r.q, r.k, r.v, r.logDecay, r.rate}
	if r.state != nil {
		in = append(in, r.state)
	} else {
		r.state = ScalarZero(r.q.Graph(), dtypes.Float32)
	}
	operands := []*Node{r.q, r.k, r.v, Exp(r.logDecay), r.rate, r.pass.count, r.state}
	list := withGradientsOf(in, func() []*Node {
		return Operation(deltaRuleName, []shapes.Shape{r.v.Shape(), states}, operands...)
	}, func(v []*Node) []*Node {
		if v[0] == nil {
			v[0] = ZerosLike(r.v)
		}
		if v[1] == nil {
			v[1] = ScalarZero(r.q.Graph(), dtypes.Float32)
		}
		perHead := shapes.Make(dtypes.Float32, d[0], d[1], d[2], keys)
		rates := r.rate.Shape()
		y := Operation(deltaRuleGradientName, []shapes.Shape{perHead, perHead, r.v.Shape(), rates, rates, states},
			append(operands, v...)...)
		heads := r.k.Shape().Dim(2)
		for i, x := range y[:2] { // heads of values share keys
			y[i] = ReduceSum(Reshape(x, d[0], d[1], heads, d[2]/heads, keys), 3)
		}
		return y
	})
	return list[0], list[1]
}

// withGradientsOf is [withGradients] of a function of two results. gradient gets nil for one that has no gradient.
func withGradientsOf(in []*Node, f func() []*Node, gradient func(v []*Node) []*Node) []*Node {
	const results = 2
	var v [results]*Node // of the pass that is under way
	var list []*Node
	y, _ := InternalFusedOpCallerMulti(f, func() []*Node {
		sum := ScalarZero(in[0].Graph(), in[0].DType())
		for i, x := range in {
			sum = Add(sum, ReduceAllSum(IdentityWithCustomGradient(x, func(_, _ *Node) *Node {
				if list == nil {
					list = gradient(slices.Clone(v[:]))
					clear(v[:])
				}
				return list[i]
			})))
		}
		stands := make([]*Node, results)
		for i := range stands {
			stands[i] = IdentityWithCustomGradient(sum, func(_, of *Node) *Node {
				v[i], list = of, nil
				return ScalarOne(of.Graph(), of.DType())
			})
		}
		return stands
	}, true)
	return y
}
