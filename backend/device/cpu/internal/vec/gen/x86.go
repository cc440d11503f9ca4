package main

import (
	"fmt"
	"slices"
	"strings"
)

// isa is what differs between AVX-512 and AVX2.
type isa struct {
	level
	letter string // of the vector registers
	width  int    // lanes of a register
	count  int    // vector registers
	masks  bool   // masks have registers of their own
}

var (
	avx512 = isa{levelAVX512, "Z", 16, 32, true}
	avx2   = isa{levelAVX2, "Y", 8, 16, false}
)

// groups is the number of registers that hold the 64 lanes of an accumulator.
func (s isa) groups() int { return 64 / s.width }

// pointers are the registers that point at the streams; AX counts elements, CX those that are left, and R12 those
// before what is prefetched.
var pointers = []string{"DI", "SI", "DX", "R8", "R9", "R10", "R11"}

// x86 writes the assembly of one kernel.
type x86 struct {
	isa
	out    *strings.Builder
	consts *constants
	kernel kernel
	prog   *program
	last   []int

	vec     *registers
	top     int // first register that vec does not hand out
	pred    *registers
	where   []int // register of each value, -1 for none
	scalars []int
	divisor map[uint32]divisor // by the number of the parameter
	labels  int                // of quotients
	pinned  map[uint32]int     // registers of constants
	group   int                // number of the vector within the iteration
	tail    bool               // lanes past the end are masked
}

func x86File(s isa, list []kernel) string {
	var out strings.Builder
	consts := newConstants()
	for _, k := range list {
		e := &x86{isa: s, out: &out, consts: consts, kernel: k}
		e.write()
	}
	for _, k := range rowKernels() {
		e := &x86{isa: s, out: &out, consts: consts, kernel: k}
		e.writeRows()
	}
	transposes(s, &out)
	var head strings.Builder
	head.WriteString(header + includes)
	for i, bits := range consts.list {
		for j := range 8 {
			fmt.Fprintf(&head, "DATA const%s<>+%d(SB)/4, $0x%08x\n", s.name, i*32+j*4, bits)
		}
	}
	fmt.Fprintf(&head, "GLOBL const%s<>(SB), RODATA|NOPTR, $%d\n", s.name, 32*len(consts.list))
	if !s.masks {
		for j := range 4 {
			fmt.Fprintf(&head, "DATA tailMask<>+%d(SB)/8, $-1\n", j*8)
		}
		head.WriteString("GLOBL tailMask<>(SB), RODATA|NOPTR, $64\n")
	}
	return head.String() + out.String()
}

func (e *x86) line(format string, args ...any) { fmt.Fprintf(e.out, "\t"+format+"\n", args...) }

func (e *x86) reg(n int) string { return fmt.Sprintf("%s%d", e.letter, n) }

// write emits the whole function: a loop over whole iterations, then what is left.
func (e *x86) write() {
	k := e.kernel
	name, signature := k.assembly(e.level)
	fmt.Fprintf(e.out, "\n// func %s%s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, signature, name, k.frame("").size)
	top := e.pin(e.prologue())
	e.loop(top)
	switch {
	case k.fold != nil:
		e.foldTail(top)
	case e.masks || !k.narrow():
		e.mapTail(top)
	}
	fmt.Fprintf(e.out, "done:\n")
	if k.fold != nil {
		e.finishFold()
	}
	e.line("VZEROUPPER")
	e.line("RET")
}

// accumulator returns the register of a group of lanes.
func (e *x86) accumulator(group int) int { return e.count - e.groups() + group }

// prologue loads the parameters and returns the first vector register that the loop may not use.
func (e *x86) prologue() (top int) {
	k, f := e.kernel, e.kernel.frame("BX")
	if k.fused {
		e.line("MOVQ call+0(FP), BX")
	}
	for i, at := range f.streams {
		e.line("MOVQ %s, %s", at, pointers[i])
	}
	e.line("MOVQ %s, CX", f.length)
	e.line("XORQ AX, AX")
	if k.prefetches() {
		e.line("MOVQ FusedCall_Ahead(BX), R12")
		e.line("SARQ $2, R12")
	}
	top = e.count
	if k.fold != nil {
		e.startFold()
		top -= e.groups()
	}
	e.scalars = nil
	for _, at := range f.scalars {
		top--
		e.line("VBROADCASTSS %s, %s", at, e.reg(top))
		e.scalars = append(e.scalars, top)
	}
	if e.masks {
		e.line("MOVL $0xffff, BX")
		return e.divisors(top)
	}
	if k.narrow() {
		e.line("MOVQ $0x0101010101010101, R12")
	}
	return top
}

// pin puts the constants that are used most into the registers that the loop does not need, and returns the first
// register that is taken.
func (e *x86) pin(top int) int {
	trial := &x86{isa: e.isa, out: &strings.Builder{}, consts: newConstants(), kernel: e.kernel, scalars: e.scalars,
		divisor: e.divisor}
	trial.body(top)
	need := trial.vec.used
	counts := map[uint32]int{}
	var order []uint32
	for _, in := range trial.prog.ins {
		for _, a := range in.args {
			if trial.isConst(a) {
				bits := trial.prog.ins[a].imm
				if counts[bits]++; counts[bits] == 1 {
					order = append(order, bits)
				}
			}
		}
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return counts[b] - counts[a] })
	if e.masks || !e.kernel.narrow() {
		trial.tail = true
		trial.body(top)
		need = max(need, trial.vec.used)
	}
	e.pinned = map[uint32]int{}
	for _, bits := range order[:min(len(order), top-need)] {
		top--
		e.pinned[bits] = top
		e.line("VBROADCASTSS const%s<>+%d(SB), %s", e.name, 32*e.consts.number(bits), e.reg(top))
	}
	return top
}

// vectors is how many vectors an iteration of the main loop has.
func (e *x86) vectors() int {
	switch {
	case e.kernel.fold != nil:
		return e.groups()
	case e.masks:
		return 4
	case e.kernel.narrow():
		return 1
	}
	return 2
}

func (e *x86) loop(top int) {
	n := e.vectors() * e.width
	e.line("SUBQ $%d, CX", n)
	e.line("JLT tail")
	fmt.Fprintf(e.out, "loop:\n")
	e.tail = false
	for e.group = range e.vectors() {
		e.body(top)
	}
	e.line("ADDQ $%d, AX", n)
	if e.kernel.prefetches() {
		e.line("ADDQ $%d, R12", n)
	}
	e.line("SUBQ $%d, CX", n)
	e.line("JGE loop")
	fmt.Fprintf(e.out, "tail:\n")
	e.line("ADDQ $%d, CX", n)
	e.line("JEQ done")
}

// mapTail handles one vector after the other, under a mask.
func (e *x86) mapTail(top int) {
	fmt.Fprintf(e.out, "rest:\n")
	e.group, e.tail = 0, true
	e.setTail()
	e.body(top)
	e.line("ADDQ $%d, AX", e.width)
	e.line("SUBQ $%d, CX", e.width)
	e.line("JGT rest")
}

// foldTail is mapTail for the lanes of an accumulator.
func (e *x86) foldTail(top int) {
	e.tail = true
	for e.group = range e.groups() {
		e.setTail()
		e.body(top)
		if e.group < e.groups()-1 {
			e.line("SUBQ $%d, CX", e.width)
			e.line("JLE done")
		}
	}
}

// setTail makes a mask of CX elements, or of a whole vector.
func (e *x86) setTail() {
	if e.masks {
		e.line("BZHIL CX, BX, R13")
		e.line("KMOVW R13, K1")
		return
	}
	e.line("MOVL $%d, BX", e.width)
	e.line("CMPQ CX, BX")
	e.line("CMOVQLT CX, BX")
	e.line("NEGQ BX")
	e.line("LEAQ tailMask<>+32(SB), R13")
	e.line("LEAQ (R13)(BX*4), R13")
}

// address returns where the vector of a stream begins.
func (e *x86) address(stream int) string {
	size := map[elem]int{f32: 4, i32: 4, u16: 2, truth: 1}[e.kernel.streams[stream].elem]
	return fmt.Sprintf("%d(%s)(AX*%d)", e.group*e.width*size, pointers[stream], size)
}

// body emits the program once.
func (e *x86) body(top int) {
	e.prog = e.kernel.program(abilities{e.masks, e.masks, e.masks}).simplify(!e.tail)
	e.last = e.prog.uses()
	e.vec = newRegisters(0, top)
	e.top = top
	e.pred = newRegisters(2, 8)
	e.where = make([]int, len(e.prog.ins))
	for i, in := range e.prog.ins {
		e.where[i] = -1
		if in.op == opConst {
			continue
		}
		if in.op == opScalar {
			e.where[i] = e.scalars[in.imm]
			continue
		}
		e.emit(val(i), in)
		e.release(i, in)
	}
}

// owned tells whether a value has a register that may be written when it is not needed any more.
func (e *x86) owned(v val) bool {
	switch e.prog.ins[v].op {
	case opConst, opScalar, opAcc:
		return false
	}
	return true
}

// release frees the registers of the operands that instruction i was the last to use.
func (e *x86) release(i int, in ins) {
	freed := map[int]bool{}
	for _, a := range in.args {
		if e.last[a] != i || !e.owned(a) || freed[int(a)] || e.bank(a) == e.vec && e.where[a] >= e.top {
			continue
		}
		freed[int(a)] = true
		if e.bank(a) == e.bank(val(i)) && e.where[a] == e.where[i] {
			continue // it holds the result
		}
		e.bank(a).give(e.where[a])
	}
}

// bank returns the registers that a value lives in.
func (e *x86) bank(v val) *registers {
	if e.masks && e.prog.ins[v].kind == mask {
		return e.pred
	}
	return e.vec
}

// constant returns the memory operand of a constant.
func (e *x86) constant(v val) string {
	return fmt.Sprintf("const%s<>+%d(SB)", e.name, 32*e.consts.number(e.prog.ins[v].imm))
}

func (e *x86) isConst(v val) bool { return e.prog.ins[v].op == opConst }

// inRegister returns a register with the value and whether it has to be given back.
func (e *x86) inRegister(v val) (r int, temporary bool) {
	if !e.isConst(v) {
		return e.where[v], false
	}
	if r, ok := e.pinned[e.prog.ins[v].imm]; ok {
		return r, false
	}
	return e.literal(e.prog.ins[v].imm), true
}

// operand returns the suffix of the mnemonic and the operand for a value that may be in memory.
func (e *x86) operand(v val) (suffix, text string) {
	if !e.isConst(v) {
		return "", e.reg(e.where[v])
	}
	if r, ok := e.pinned[e.prog.ins[v].imm]; ok {
		return "", e.reg(r)
	}
	if e.masks {
		return ".BCST", e.constant(v)
	}
	return "", e.constant(v)
}

// target returns the register for the result of instruction v: one of an operand that is not needed any more, or a new
// one, or the accumulator if the result becomes it.
func (e *x86) target(v val) int {
	next := int(v) + 1
	if next < len(e.prog.ins) && e.prog.ins[next].op == opSetAcc && e.prog.ins[next].args[0] == v {
		return e.accumulator(e.group)
	}
	for _, a := range e.prog.ins[v].args {
		if e.last[a] == int(v) && e.owned(a) && e.bank(a) == e.vec {
			return e.where[a]
		}
	}
	return e.vec.take(e.kernel.name)
}
