package main

import "math"

// The formulas of the element-wise functions. The polynomials are minimax fits of this project: reweighted least
// squares in 120 bits, with the coefficients rounded to float32 one after the other and the rest fitted again.

const (
	log2e   = float32(math.Log2E)
	ln2High = float32(math.Ln2)
	ln2Low  = float32(math.Ln2 - float64(ln2High))
	toNext  = float32(3 << 22) // a sum with it is integral; its low bits are that integer
)

// horner returns c[0] + c[1]*x + ...
func (p *program) horner(x val, c ...float32) val {
	sum := p.num(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		sum = p.fma(sum, x, p.num(c[i]))
	}
	return sum
}

// reduceExp returns integral n and r, at most 0.347 away from 0, so that x = n*ln(2) + r. If above is true, it takes x
// above 89, where exp is infinite, for 89.
func (p *program) reduceExp(x val, above bool) (n, r val) {
	if above {
		x = p.min(p.num(89), x)
	}
	n = p.minus(p.fma(x, p.num(log2e), p.num(toNext)), p.num(toNext))
	r = p.fnma(n, p.num(ln2High), x)
	return n, p.fnma(n, p.num(ln2Low), r)
}

// expPoly returns (exp(r) - 1 - r) / r^2 with an error of 0.06 ulp of exp(r).
func (p *program) expPoly(r val) val {
	return p.horner(r, 0x1.fffffcp-2, 0x1.555492p-3, 0x1.5558b6p-5, 0x1.1239a8p-7, 0x1.6a474ep-10)
}

func (p *program) exp(x val) val { return p.expOf(x, true) }

// expBelow is exp, with the same bits, for x <= 0 or NaN.
func (p *program) expBelow(x val) val { return p.expOf(x, false) }

// expOf returns 2^n * exp(r), and 0 up to -104 without computing it: processors take 30 times as long for what
// underflows, and what a mask takes out of a softmax does.
func (p *program) expOf(x val, above bool) val {
	one, zero := p.num(1), p.num(0)
	none := p.cmp(lessEqual, x, p.num(-104))
	n, r := p.reduceExp(p.choose(none, zero, x), above)
	return p.choose(none, zero, p.scale(p.fma(p.fma(p.expPoly(r), r, one), r, one), n))
}

// expm1 loses the sign of -0. Below -80 it is -1, without underflow.
func (p *program) expm1(x val) val {
	n, r := p.reduceExp(p.max(p.num(-80), x), true)
	small := p.fma(p.expPoly(r), p.times(r, r), r)
	half := p.scale(p.num(0.5), n) // 2^n itself may overflow
	y := p.fma(small, half, p.minus(half, p.num(0.5)))
	return p.choose(p.cmp(equal, n, p.num(0)), small, p.plus(y, y))
}

// expm1Below is expm1 for x <= 0 or NaN.
func (p *program) expm1Below(x val) val {
	n, r := p.reduceExp(p.max(p.num(-80), x), false)
	one := p.num(1)
	power := p.scale(one, n)
	return p.fma(p.fma(p.expPoly(r), p.times(r, r), r), power, p.minus(power, one))
}

// keepZero returns y, and x where that is 0.
func (p *program) keepZero(x, y val) val { return p.choose(p.cmp(equal, x, p.num(0)), x, y) }

const threeQuarters = 0x3f400000 // bits of 0.75

// splitLog returns e and m, from 0.75 to 1.5, so that x = m * 2^e, for x > 0.
func (p *program) splitLog(x val) (e, m val) {
	if p.has.parts {
		m = p.add(opFraction, float, 0, x)
		return p.minus(p.add(opExponent, float, 0, x), p.add(opExponent, float, 0, m)), m
	}
	tiny := p.cmp(less, x, p.num(0x1p-126))
	x = p.choose(tiny, p.times(x, p.num(0x1p25)), x)
	w := p.subWord(p.asWord(x), p.bits(threeQuarters))
	m = p.asFloat(p.addWord(p.and(w, p.bits(0x7fffff)), p.bits(threeQuarters)))
	return p.minus(p.toFloat(p.arith(w, 23)), p.choose(tiny, p.num(25), p.num(0))), m
}

// logOf returns log(1+f) + e*ln(2) for f from -0.25 to 0.5.
func (p *program) logOf(f, e val) val {
	cubic := p.horner(f, 0x1.55555ap-2, -0x1.00006ep-2, 0x1.999764p-3, -0x1.5519d2p-3, 0x1.24638ep-3,
		-0x1.04ad98p-3, 0x1.df1c62p-4, -0x1.75002ep-4, 0x1.340ebap-5)
	square := p.times(f, f)
	y := p.times(p.times(f, square), cubic)
	y = p.fma(e, p.num(ln2Low), y)
	y = p.fma(square, p.num(-0.5), y)
	return p.fma(e, p.num(ln2High), p.plus(f, y))
}

// logEdges gives the logarithm y of x at the edges of its domain.
func (p *program) logEdges(x, y val) val {
	if p.has.parts {
		return p.add(opLogEdges, float, 0, y, x)
	}
	inf := float32(math.Inf(1))
	y = p.choose(p.cmp(less, x, p.num(inf)), y, x)
	y = p.choose(p.cmp(less, x, p.num(0)), p.num(float32(math.NaN())), y)
	return p.choose(p.cmp(equal, x, p.num(0)), p.num(-inf), y)
}

func (p *program) log(x val) val {
	e, m := p.splitLog(x)
	return p.logEdges(x, p.logOf(p.minus(m, p.num(1)), e))
}

// log1p takes the exponent from 1+x and the fraction from x itself: x*2^-e + (2^-e - 1).
func (p *program) log1p(x val) val {
	one := p.num(1)
	u := p.plus(one, x)
	e, _ := p.splitLog(u)
	down := p.neg(e)
	f := p.plus(p.scale(x, down), p.minus(p.scale(one, down), one))
	return p.keepZero(x, p.logEdges(u, p.logOf(f, e)))
}

// sigmoidParts returns n and d so that sigmoid(x) = n/d: for x < 0 it is exp(x) / (1+exp(x)), which keeps small
// results.
func (p *program) sigmoidParts(x val) (n, d val) {
	e := p.expBelow(p.asFloat(p.or(p.asWord(x), p.bits(1<<31)))) // of -|x|
	one := p.num(1)
	return p.choose(p.cmp(less, x, p.num(0)), e, one), p.plus(one, e)
}

func (p *program) sigmoid(x val) val { return p.over(p.sigmoidParts(x)) }

// tanh returns -e/(2+e), where e = exp(-2|x|) - 1, with the sign of x; and where that is large, 1 - 2(e+1)/(2+e), which
// makes less of the error of e.
func (p *program) tanh(x val) val {
	e := p.expm1Below(p.times(p.num(-2), p.abs(x)))
	large := p.cmp(less, e, p.num(-2.0/3))
	rest := p.plus(e, p.num(1))
	q := p.over(p.choose(large, p.plus(rest, rest), e), p.plus(p.num(2), e))
	return p.copySign(p.choose(large, p.minus(p.num(1), q), q), x)
}

// copySign returns |a| with the sign of b.
func (p *program) copySign(a, b val) val {
	if p.has.parts {
		return p.add(opCopySign, float, 0, a, b)
	}
	return p.asFloat(p.or(p.and(p.asWord(a), p.bits(0x7fffffff)), p.and(p.asWord(b), p.bits(1<<31))))
}

func (p *program) sign(x val) val {
	zero := p.num(0)
	return p.choose(p.cmp(greater, x, zero), p.num(1), p.choose(p.cmp(less, x, zero), p.num(-1), x))
}

// maxNaN returns the larger one, b if they are equal, NaN if one is.
func (p *program) maxNaN(a, b val) val {
	return p.choose(p.cmp(unordered, a, a), a, p.max(a, b))
}

// minNaN is the counterpart of maxNaN.
func (p *program) minNaN(a, b val) val {
	return p.choose(p.cmp(unordered, a, a), a, p.min(a, b))
}
