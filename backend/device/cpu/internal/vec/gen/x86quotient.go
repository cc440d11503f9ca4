package main

import (
	"math"
	"strconv"
)

// A quotient by a parameter is made of products where neither the parameter nor a number of the vector is extreme, and
// else the processor divides the vector: see divide of package vec. With a divisor b from 2^-20 to 2^20 and |a| from
// 2^-100 to 2^100, q is normal, and e is a multiple of 2^-148. 0 counts as extreme, so that the quotient has its sign
// by itself.
var (
	// the least one, and how many words there are
	quickDivisor, quickDivisors     = math.Float32bits(0x1p-20), uint32(40 << 23)
	quickNumerator, quickNumerators = math.Float32bits(0x1p-100), uint32(200 << 23) // the same of |a|
)

// overNumber returns a/b of a parameter b.
func (p *program) overNumber(a, b val) val {
	if !p.has.quick {
		return p.over(a, b)
	}
	return p.add(opQuotient, float, 0, a, b, p.bits(2*quickNumerator))
}

// divisor are the registers with what a quotient needs of a parameter b.
type divisor struct {
	inverse int // 1/b
	words   int // twice how many numerators there are for which products will do: 0 if b is extreme
}

// divisors prepares the parameters that a kernel divides by, and returns the first register that is taken.
func (e *x86) divisors(top int) int {
	e.divisor = map[uint32]divisor{}
	p := e.kernel.program(abilities{quick: true})
	for _, in := range p.ins {
		if in.op != opQuotient {
			continue
		}
		number := p.ins[in.args[1]].imm
		if _, ok := e.divisor[number]; ok {
			continue
		}
		top -= 2
		d, b := divisor{top, top + 1}, e.reg(e.scalars[number])
		e.divisor[number] = d
		e.line("VBROADCASTSS const%s<>+%d(SB), %s", e.name, e.bits(math.Float32bits(1)), e.reg(d.inverse))
		e.line("VDIVPS %s, %s, %s", b, e.reg(d.inverse), e.reg(d.inverse))
		e.line("VPSUBD.BCST const%s<>+%d(SB), %s, %s", e.name, e.bits(quickDivisor), b, e.reg(d.words))
		e.line("VPCMPUD.BCST $1, const%s<>+%d(SB), %s, K2", e.name, e.bits(quickDivisors), e.reg(d.words))
		e.line("VPBROADCASTD.Z const%s<>+%d(SB), K2, %s", e.name, e.bits(2*quickNumerators), e.reg(d.words))
	}
	return top
}

// bits returns where a constant lies.
func (e *x86) bits(bits uint32) int { return 32 * e.consts.number(bits) }

// quotient emits opQuotient. A word and itself are twice the word without its sign.
func (e *x86) quotient(v val, in ins) {
	number := e.prog.ins[in.args[1]].imm
	d, a, b := e.divisor[number], e.reg(e.where[in.args[0]]), e.reg(e.scalars[number])
	q, t, extreme := e.vec.take(e.kernel.name), e.vec.take(e.kernel.name), e.pred.take(e.kernel.name)
	e.where[v] = q
	suffix, least := e.operand(in.args[2])
	e.line("VPADDD %s, %s, %s", a, a, e.reg(t))
	e.line("VPSUBD%s %s, %s, %s", suffix, least, e.reg(t), e.reg(t))
	e.line("VPCMPUD $5, %s, %s, K%d", e.reg(d.words), e.reg(t), extreme)
	e.line("VMULPS %s, %s, %s", e.reg(d.inverse), a, e.reg(q))
	e.line("VMOVAPS %s, %s", a, e.reg(t))
	e.line("VFNMADD231PS %s, %s, %s", b, e.reg(q), e.reg(t))
	e.line("VFMADD231PS %s, %s, %s", e.reg(d.inverse), e.reg(t), e.reg(q))
	e.line("KORTESTW K%d, K%d", extreme, extreme)
	e.line("JEQ quick%d", e.labels)
	e.line("VDIVPS %s, %s, %s", b, a, e.reg(q))
	e.label("quick" + strconv.Itoa(e.labels))
	e.labels++
	e.vec.give(t)
	e.pred.give(extreme)
}
