package vec

import (
	"math"
	"testing"
)

// ulps returns how far a float is from a value, in units of the last place of a float of that size.
func ulps(got float32, want float64) float64 {
	exact := float32(want)
	if same(got, exact) {
		got = exact
	}
	if math.IsNaN(want) || math.IsInf(float64(exact), 0) || math.IsInf(float64(got), 0) {
		if same(got, exact) {
			return 0
		}
		if !math.IsInf(want, 0) && !math.IsNaN(want) { // on the brink of overflow
			return math.Abs(math.Min(math.Max(float64(got), -0x1p128), 0x1p128)-want) * 0x1p-104
		}
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e-24, -149))
}

func sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func TestUnary_Accuracy(t *testing.T) {
	for _, c := range []struct {
		op    UnaryOp
		bound float64
		exact func(x float64) float64
		limit float64 // of |x|, 0 for none
	}{
		{OpSqrt, 0.5, math.Sqrt, 0},
		{OpRsqrt, 1.5, func(x float64) float64 { return 1 / math.Sqrt(x) }, 0},
		{OpExp, 1, math.Exp, 0},
		{OpExpm1, 2, math.Expm1, 0},
		{OpLog, 1, math.Log, 0},
		{OpLog1p, 2, math.Log1p, 0},
		{OpSigmoid, 2.2, sigmoid64, 0},
		{OpTanh, 2.2, math.Tanh, 0},
		{OpSin, 2, math.Sin, 0},
		{OpCos, 2, math.Cos, 0},
		{OpFloor, 0, math.Floor, 0},
		{OpCeil, 0, math.Ceil, 0},
		{OpRound, 0, math.RoundToEven, 0},
	} {
		worst, at := worstError(c.op, c.exact, c.limit)
		t.Logf("operation %d: %.3f ulp at %v", c.op, worst, at)
		if worst > c.bound {
			t.Errorf("operation %d is wrong by %.3f ulp at %v (%08x)", c.op, worst, at, math.Float32bits(at))
		}
	}
}

// worstError tries every 4,099th float.
func worstError(op UnaryOp, exact func(float64) float64, limit float64) (worst float64, at float32) {
	x, y := make([]float32, 0, chunk), make([]float32, chunk)
	flush := func() {
		UnaryFunc(best(), op)(y[:len(x)], x)
		for i, v := range x {
			if e := ulps(y[i], exact(float64(v))); e > worst {
				worst, at = e, v
			}
		}
		x = x[:0]
	}
	for bits := uint64(0); bits < 1<<32; bits += 4099 {
		v := math.Float32frombits(uint32(bits))
		if limit != 0 && !(math.Abs(float64(v)) <= limit) {
			continue
		}
		if x = append(x, v); len(x) == chunk {
			flush()
		}
	}
	flush()
	return worst, at
}
