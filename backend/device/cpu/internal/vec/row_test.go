package vec

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

var rowSizes = []int{1, 2, 15, 16, 63, 64, 65, 300, 896}

// split runs a row operation as the primitives that its comment names.
type split struct{ l Level }

func (s split) unary(op UnaryOp, x []float32) []float32 {
	y := make([]float32, len(x))
	Unary(s.l, op, y, x)
	return y
}

func (s split) binary(op BinaryOp, a, b []float32) []float32 {
	y := make([]float32, len(a))
	Binary(s.l, op, y, a, b)
	return y
}

func (s split) scalar(op BinaryOp, a []float32, b float32) []float32 {
	y := make([]float32, len(a))
	BinaryScalar(s.l, op, y, a, b)
	return y
}

func (s split) softmax(x []float32, scale float32) []float32 {
	x = s.scalar(OpMul, x, scale)
	e := s.unary(OpExp, s.scalar(OpSub, x, Max(s.l, x)))
	return s.scalar(OpMul, e, 1/Sum(s.l, e))
}

func (s split) logSoftmax(x []float32, scale float32) []float32 {
	x = s.scalar(OpMul, x, scale)
	shifted := s.scalar(OpSub, x, Max(s.l, x))
	sum := Sum(s.l, s.unary(OpExp, shifted))
	return s.scalar(OpSub, shifted, s.unary(OpLog, []float32{sum})[0])
}

func TestSoftmax_IsItsParts(t *testing.T) {
	r := newRandom(10)
	for _, n := range append(rowSizes, 2*chunk+3) {
		for _, scale := range []float32{1, 0.125, 3} {
			x := moderate(r, n+10)
			x[r.IntN(n)] = float32(math.Inf(-1))
			x[r.IntN(n)] = 20
			for _, l := range cpuid.Supported() {
				want := split{l}.softmax(x[:n], scale)
				got, all := guarded(n+10, 2)
				Softmax(l, got, x, n, scale)
				wantSame(t, fmt.Sprint("softmax ", l), got, append(want, make([]float32, 10)...))
				wantGuards(t, "softmax", all, n+10, 2)
				own := slices.Clone(x)
				Softmax(l, own, own, n, scale)
				wantSame(t, fmt.Sprint("softmax in place ", l), own[:n], want)
				want = split{l}.logSoftmax(x[:n], scale)
				LogSoftmax(l, got, x, n, scale)
				wantSame(t, fmt.Sprint("logarithm of softmax ", l), got[:n], want)
				for i := range min(n, 20) {
					wantSame(t, "one of them", []float32{LogSoftmaxAt(l, x[:n], i, scale)}, want[i:i+1])
				}
			}
		}
	}
}

func TestSoftmax_Values(t *testing.T) {
	r := newRandom(11)
	x := moderate(r, 1000)
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v))
	}
	for _, l := range cpuid.Supported() {
		y := make([]float32, len(x))
		Softmax(l, y, x, len(x), 1)
		for i, v := range x {
			if want := math.Exp(float64(v)) / sum; math.Abs(float64(y[i])-want) > 4e-7*want {
				t.Fatalf("%v: softmax is %v, want %v", l, y[i], want)
			}
		}
		Softmax(l, y, x, 0, 1)
		if Max(l, y) != 0 || Min(l, y) != 0 {
			t.Errorf("%v: masked elements are not 0", l)
		}
		Softmax(l, y[:2], []float32{1, 1}, 2, -1)
		if y[0] != 0.5 || y[1] != 0.5 {
			t.Errorf("%v: softmax of equal numbers is %v", l, y[:2])
		}
	}
}

func TestRMSNorm_IsItsParts(t *testing.T) {
	r := newRandom(12)
	for _, n := range append(rowSizes, chunk+9) {
		x, w, g := moderate(r, n), moderate(r, n), moderate(r, n)
		for _, l := range cpuid.Supported() {
			s := split{l}
			mean := Sum(l, s.unary(OpSquare, x))/float32(n) + 1e-6
			inv := s.unary(OpRsqrt, []float32{mean})[0]
			y := make([]float32, n)
			if got := RMSNorm(l, y, x, w, 1e-6); !same(got, inv) {
				t.Fatalf("%v: r is %v, want %v", l, got, inv)
			}
			wantSame(t, "RMSNorm", y, s.binary(OpMul, s.scalar(OpMul, x, inv), w))

			gw := s.binary(OpMul, g, w)
			k := inv * inv * (Sum(l, s.binary(OpMul, gw, x)) / float32(n))
			RMSNormGrad(l, y, g, x, w, inv)
			wantSame(t, "its gradient", y, s.scalar(OpMul, s.binary(OpSub, gw, s.scalar(OpMul, x, k)), inv))

			dw := slices.Clone(w)
			RMSNormWeightGrad(l, dw, g, x, inv)
			wantSame(t, "that of the weight", dw, s.binary(OpAdd, w, s.binary(OpMul, g, s.scalar(OpMul, x, inv))))
		}
	}
}

// The gradients against differences.
func TestRMSNormGrad_Values(t *testing.T) {
	r := newRandom(13)
	const n, h = 40, 1e-6
	x, w, g := moderate(r, n), moderate(r, n), moderate(r, n)
	loss := func(at int, move float64) (sum float64) {
		squares := 0.0
		value := func(i int) float64 {
			if i == at {
				return float64(x[i]) + move
			}
			return float64(x[i])
		}
		for i := range n {
			squares += value(i) * value(i)
		}
		for i := range n {
			sum += float64(g[i]) * float64(w[i]) * value(i) / math.Sqrt(squares/n+1e-6)
		}
		return sum
	}
	y, dx := make([]float32, n), make([]float32, n)
	RMSNormGrad(best(), dx, g, x, w, RMSNorm(best(), y, x, w, 1e-6))
	for i := range n {
		if want := (loss(i, h) - loss(i, -h)) / (2 * h); math.Abs(float64(dx[i])-want) > 1e-5 {
			t.Errorf("the gradient of element %d is %v, want %v", i, dx[i], want)
		}
	}
}

func TestSwiGLU_IsItsParts(t *testing.T) {
	r := newRandom(14)
	for _, n := range append(rowSizes, chunk+9) {
		a, b, g := random(r, n), random(r, n), random(r, n)
		for _, l := range cpuid.Supported() {
			s := split{l}
			y, da, db := make([]float32, n), make([]float32, n), make([]float32, n)
			SwiGLU(l, y, a, b)
			wantSame(t, "SwiGLU", y, s.binary(OpMul, s.unary(OpSilu, a), b))
			SwiGLUGrad(l, da, db, g, a, b)
			wantSame(t, "gradient of b", db, s.binary(OpMul, g, s.unary(OpSilu, a)))
			sig := s.unary(OpSigmoid, a)
			ones := make([]float32, n)
			Fill(l, ones, 1)
			slope := s.binary(OpMul, sig, s.binary(OpAdd, ones, s.binary(OpMul, a, s.binary(OpSub, ones, sig))))
			wantSame(t, "gradient of a", da, s.binary(OpMul, s.binary(OpMul, g, b), slope))
			own := slices.Clone(a)
			SwiGLU(l, own, own, b)
			wantSame(t, "SwiGLU in place", own, y)
		}
	}
}

func TestRotate_IsItsParts(t *testing.T) {
	r := newRandom(15)
	for _, h := range []int{0, 1, 5, 16, 32, 64, 70} {
		x := random(r, 3*2*h)
		cos, sin := moderate(r, h), moderate(r, h)
		for _, l := range cpuid.Supported() {
			s := split{l}
			y, back := make([]float32, len(x)), make([]float32, len(x))
			Rotate(l, y, x, cos, sin)
			RotateBack(l, back, x, cos, sin)
			for i := 0; i < len(x); i += 2 * h {
				x1, x2 := x[i:i+h], x[i+h:i+2*h]
				c1, c2, s1, s2 := s.binary(OpMul, x1, cos), s.binary(OpMul, x2, cos), s.binary(OpMul, x1, sin), s.binary(OpMul, x2, sin)
				wantSame(t, "first half", y[i:], s.binary(OpSub, c1, s2))
				wantSame(t, "second half", y[i+h:], s.binary(OpAdd, c2, s1))
				wantSame(t, "first half back", back[i:], s.binary(OpAdd, c1, s2))
				wantSame(t, "second half back", back[i+h:], s.binary(OpSub, c2, s1))
			}
			own := slices.Clone(x)
			Rotate(l, own, own, cos, sin)
			wantSame(t, "in place", own, y)
		}
	}
}

func TestAdamW_Values(t *testing.T) {
	r := newRandom(16)
	a := AdamW{Rate: 1e-3, Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-8, Decay: 0.1, Step: 3}
	for _, n := range append(rowSizes, chunk+9) {
		w, m, v, g := moderate(r, n), moderate(r, n), moderate(r, n), moderate(r, n)
		Unary(best(), OpSquare, v, v)
		w1, m1, v1 := slices.Clone(w), slices.Clone(m), slices.Clone(v)
		a.Update(Portable, w1, m1, v1, g)
		for i := range n {
			m2 := 0.9*float64(m[i]) + 0.1*float64(g[i])
			v2 := 0.99*float64(v[i]) + 0.01*float64(g[i])*float64(g[i])
			w2 := float64(w[i])*(1-1e-4) - 1e-3*(m2/(1-0.9*0.9*0.9))/(math.Sqrt(v2/(1-0.99*0.99*0.99))+1e-8)
			if far(w1[i], w2) || far(m1[i], m2) || far(v1[i], v2) {
				t.Fatalf("the step gives %v, %v, %v, want %v, %v, %v", w1[i], m1[i], v1[i], w2, m2, v2)
			}
		}
		for _, l := range fast() {
			w3, m3, v3 := slices.Clone(w), slices.Clone(m), slices.Clone(v)
			a.Update(l, w3, m3, v3, g)
			wantSame(t, "weights", w3, w1)
			wantSame(t, "means", m3, m1)
			wantSame(t, "squares", v3, v1)
		}
	}
}

// far tells whether a result is off by more than a few roundings.
func far(got float32, want float64) bool {
	return math.Abs(float64(got)-want) > 1e-6*max(1, math.Abs(want))
}
