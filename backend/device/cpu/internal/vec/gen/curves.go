package main

// reduceAngle returns the angle of x within its quarter turn, from -pi/4 to pi/4, and the number of the quarter in the
// low bits. Up to 1e5 the first product is exact together with its sum.
func (p *program) reduceAngle(x val) (r, quarter val) {
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

func (p *program) sin(x val) val { return p.keepZero(x, p.wave(p.reduceAngle(x))) }

func (p *program) cos(x val) val {
	r, quarter := p.reduceAngle(x)
	return p.wave(r, p.addWord(quarter, p.bits(1)))
}
