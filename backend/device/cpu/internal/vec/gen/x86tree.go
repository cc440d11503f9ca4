package main

import (
	"fmt"
	"strings"
)

// trees writes the functions that bring the 64 lanes of an accumulator together, by halves.
func trees(s isa, out *strings.Builder, consts *constants) {
	for _, t := range []struct {
		name string
		fold *fold
	}{{"sumTree", sum}, {"maxTree", largest}, {"minTree", least}} {
		e := &x86{isa: s, out: out, consts: consts, kernel: kernel{name: t.name, fold: t.fold}}
		fmt.Fprintf(out, "\n// func %s%s(lanes *[64]float32) float32\nTEXT ·%s%s(SB), NOSPLIT, $0-12\n", t.name, s.name, t.name, s.name)
		e.line("MOVQ lanes+0(FP), BX")
		for g := range s.groups() {
			e.line("VMOVUPS %d(BX), %s", g*4*s.width, e.reg(g))
		}
		for half := s.groups() / 2; half > 0; half /= 2 {
			for g := range half {
				e.step(g, g+half)
			}
		}
		if s.masks {
			e.line("VEXTRACTF64X4 $1, Z0, Y1")
			e.step(0, 1)
		}
		e.line("VEXTRACTF128 $1, Y0, X1")
		e.step(0, 1)
		e.line("VPSHUFD $0xee, X0, X1")
		e.step(0, 1)
		e.line("VPSHUFD $0x55, X0, X1")
		e.step(0, 1)
		e.line("VMOVSS X0, ret+8(FP)")
		e.line("VZEROUPPER")
		e.line("RET")
	}
}

// step gathers register x into register acc.
func (e *x86) step(acc, x int) {
	p := newProgram(true)
	a, b := p.add(opLoad, float, 0), p.add(opLoad, float, 1)
	p.add(opStore, float, 0, e.kernel.fold.step(p, a, b))
	e.prog, e.last = p, p.uses()
	e.vec, e.pred, e.top = newRegisters(e.groups(), e.count), newRegisters(2, 8), e.count
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
