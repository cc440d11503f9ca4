package main

import (
	"fmt"
	"math"
)

// startFold loads the accumulator from the lanes, or sets it to the identity where there are none. Fused kernels have
// none.
func (e *x86) startFold() {
	if e.kernel.fused {
		e.identity()
		return
	}
	e.line("MOVQ lanes+0(FP), BX")
	e.line("TESTQ BX, BX")
	e.line("JNE resume")
	e.identity()
	e.line("JMP begin")
	e.label("resume")
	for g := range e.groups() {
		e.line("VMOVUPS %d(BX), %s", g*4*e.width, e.reg(e.accumulator(g)))
	}
	e.label("begin")
}

// identity sets the accumulator.
func (e *x86) identity() {
	for g := range e.groups() {
		bits := math.Float32bits(e.kernel.fold.identity)
		e.line("VBROADCASTSS const%s<>+%d(SB), %s", e.name, 32*e.consts.number(bits), e.reg(e.accumulator(g)))
	}
}

// finishFold stores the accumulator in the lanes, if there are any, and returns what it comes to: its lanes are brought
// together by halves.
func (e *x86) finishFold() {
	if e.kernel.fused {
		e.together()
		e.line("MOVQ call+0(FP), BX")
		e.line("VMOVSS X%d, FusedCall_Sum(BX)", e.accumulator(0))
		return
	}
	e.line("MOVQ lanes+0(FP), BX")
	e.line("TESTQ BX, BX")
	e.line("JEQ together")
	for g := range e.groups() {
		e.line("VMOVUPS %s, %d(BX)", e.reg(e.accumulator(g)), g*4*e.width)
	}
	e.label("together")
	e.together()
	e.line("VMOVSS X%d, ret+%d(FP)", e.accumulator(0), e.kernel.frame("").size-4)
}

// together brings the lanes of the accumulator together in the first one.
func (e *x86) together() {
	for half := e.groups() / 2; half > 0; half /= 2 {
		for g := range half {
			e.step(e.accumulator(g), e.accumulator(g+half))
		}
	}
	acc, x := e.accumulator(0), e.accumulator(1)
	if e.masks {
		e.line("VEXTRACTF64X4 $1, Z%d, Y%d", acc, x)
		e.step(acc, x)
	}
	e.line("VEXTRACTF%s $1, Y%d, X%d", map[bool]string{true: "32X4", false: "128"}[e.masks], acc, x)
	e.step(acc, x)
	e.line("VPSHUFD $0xee, X%d, X%d", acc, x)
	e.step(acc, x)
	e.line("VPSHUFD $0x55, X%d, X%d", acc, x)
	e.step(acc, x)
}

// writeRows emits the kernel that gathers one row after another, without a call for each: DI points at a row, DX counts
// those that are left, SI is the length of one, and R8 points at its result.
func (e *x86) writeRows() {
	name := e.kernel.rowsName() + e.name
	fmt.Fprintf(e.out, "\n// func %s(%s)\nTEXT ·%s(SB), NOSPLIT, $0-56\n", name, rowsParameters, name)
	e.line("MOVQ dst_base+0(FP), R8")
	e.line("MOVQ dst_len+8(FP), DX")
	e.line("MOVQ x_base+24(FP), DI")
	e.line("MOVQ n+48(FP), SI")
	if e.masks {
		e.line("MOVL $0xffff, BX")
	}
	e.label("row")
	e.line("XORQ AX, AX")
	e.line("MOVQ SI, CX")
	e.identity()
	top := e.count - e.groups()
	e.loop(top)
	e.foldTail(top)
	e.label("done")
	e.together()
	e.line("VMOVSS X%d, (R8)", e.accumulator(0))
	e.line("ADDQ $4, R8")
	e.line("LEAQ (DI)(SI*4), DI")
	e.line("DECQ DX")
	e.line("JNZ row")
	e.line("VZEROUPPER")
	e.line("RET")
}

// step gathers register x into register acc.
func (e *x86) step(acc, x int) {
	p := newProgram(abilities{})
	a, b := p.load(0, float), p.load(1, float)
	p.add(opStore, float, 0, e.kernel.fold.step(p, a, b))
	p = p.simplify(true)
	e.prog, e.last = p, p.uses()
	e.vec, e.pred, e.top = newRegisters(0, e.count-e.groups()), newRegisters(2, 8), e.count-e.groups()
	e.where = make([]int, len(p.ins))
	e.where[a], e.where[b] = acc, x
	for i, in := range p.ins[2:] {
		if in.op == opStore {
			if from := e.where[in.args[0]]; from != acc {
				e.line("VMOVAPS %s, %s", e.reg(from), e.reg(acc))
			}
			return
		}
		e.emit(val(i+2), in)
		e.release(i+2, in)
	}
}

func (e *x86) label(name string) { fmt.Fprintf(e.out, "%s:\n", name) }
