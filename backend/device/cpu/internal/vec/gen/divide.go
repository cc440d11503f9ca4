package main

import "math"

// quotient returns a/b, rounded as a division, where r is 1/b, rounded:
//
//	q = a*r, e = a - b*q, a/b = q + e*r
//
// where a is 0 with its sign. See divide of package vec for why, and for which a and b.
func (p *program) quotient(a, b, r val) val {
	q := p.times(a, r)
	return p.copySign(p.fma(p.fnma(b, q, a), r, q), a)
}

// moderate is the least number of moderate size, in bits.
var moderate = math.Float32bits(0x1p-63)

// extreme returns bits of which one of the two upper ones is set if |x| is neither 0 nor from 2^-63 to 2^65: those are
// 128 exponents, a quarter of all words.
func (p *program) extreme(x val) val {
	above := p.asFloat(p.subWord(p.and(p.asWord(x), p.bits(0x7fffffff)), p.bits(moderate)))
	return p.choose(p.cmp(equal, x, p.num(0)), p.num(0), above)
}

// orBits joins bits.
func (p *program) orBits(a, b val) val { return p.asFloat(p.or(p.asWord(a), p.asWord(b))) }
