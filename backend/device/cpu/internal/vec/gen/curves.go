package main

// phi returns the distribution function of the normal distribution:
//
//	Phi(-u) = exp(-u^2/2) * t*R(u*t), t = 1/(1 + 0.3u), u >= 0
//	Phi(u)  = 1 - Phi(-u)
//
// What squaring rounds away is put back behind exp, so that small results are as exact as large ones.
func (p *program) phi(x val) val {
	u := p.min(p.num(14.6), p.abs(x))
	half := p.times(u, p.num(-0.5))
	square := p.times(half, u)
	lost := p.fnma(half, u, square)
	e := p.expBelow(square)
	e = p.fnma(e, lost, e)
	one := p.num(1)
	t := p.over(one, p.fma(u, p.num(0.3), one))
	r := p.horner(p.times(u, t), 0.5, -0x1.fdd566p-3, 0x1.c7bf64p-5, -0x1.1ecafp-9, -0x1.28805p-10, 0x1.d6989cp-15,
		0x1.038abep-17, 0x1.0336b2p-16, -0x1.40d544p-18, 0x1.b23f6ep-22)
	tail := p.times(e, p.times(t, r))
	return p.choose(p.cmp(less, x, p.num(0)), tail, p.minus(one, tail))
}

// gelu returns x * Phi(x). Phi is less than every float below -14.6, where phi stays.
func (p *program) gelu(x val) val { return p.times(x, p.phi(x)) }

// turn returns the angle of x within its quarter turn, from -pi/4 to pi/4, and the number of the quarter in the low bits.
// Up to 1e5 the first product is exact together with its sum.
func (p *program) turn(x val) (r, quarter val) {
	t := p.fma(x, p.num(0x1.45f306p-1), p.num(toNext))
	n := p.minus(t, p.num(toNext))
	r = p.fnma(n, p.num(0x1.921fb6p+0), x)
	r = p.fnma(n, p.num(-0x1.777a5cp-25), r)
	return p.fnma(n, p.num(-0x1.ee59dap-50), r), p.asWord(t)
}

// wave returns the sine of r + quarter*pi/2.
func (p *program) wave(r, quarter val) val {
	z := p.times(r, r)
	sin := p.fma(p.times(r, z), p.horner(z, -0x1.555556p-3, 0x1.111174p-7, -0x1.a05962p-13, 0x1.7c3382p-19), r)
	cos := p.fma(z, p.fma(z, p.horner(z, 0x1.55554ap-5, -0x1.6c0c28p-10, 0x1.99e812p-16), p.num(-0.5)), p.num(1))
	even := p.cmp(equal, p.toFloat(p.and(quarter, p.bits(1))), p.num(0))
	sign := p.and(p.left(quarter, 30), p.bits(1<<31))
	return p.asFloat(p.xor(p.asWord(p.choose(even, sin, cos)), sign))
}

func (p *program) sin(x val) val { return p.keepZero(x, p.wave(p.turn(x))) }

func (p *program) cos(x val) val {
	r, quarter := p.turn(x)
	return p.wave(r, p.addWord(quarter, p.bits(1)))
}
