package main

import (
	"fmt"
	"math"
	"strings"
)

// neon writes the assembly of one kernel for arm64. It handles whole vectors, or whole rounds of 64 lanes of a fold; Go
// does the rest. The assembler does not know most of the instructions, so they are written as numbers.
type neon struct {
	out     *strings.Builder
	consts  *constants
	kernel  kernel
	prog    *program
	last    []int
	vec     *registers
	where   []int
	scalars []int
	group   int
}

// neonAccumulator is the first of 16 registers that hold an accumulator.
const neonAccumulator = 16

func neonFile(list []kernel) string {
	var out strings.Builder
	consts := newConstants()
	for _, k := range list {
		if !k.narrow() {
			e := &neon{out: &out, consts: consts, kernel: k, prog: k.program(abilities{}).simplify(true)}
			e.write()
		}
	}
	var head strings.Builder
	head.WriteString(header + includes)
	for i, bits := range consts.list {
		for j := range 4 {
			fmt.Fprintf(&head, "DATA constNEON<>+%d(SB)/4, $0x%08x\n", i*16+j*4, bits)
		}
	}
	fmt.Fprintf(&head, "GLOBL constNEON<>(SB), RODATA|NOPTR, $%d\n", 16*len(consts.list))
	return head.String() + out.String()
}

func (e *neon) line(format string, args ...any) { fmt.Fprintf(e.out, "\t"+format+"\n", args...) }

// word writes an instruction as a number, with what it does as a comment.
func (e *neon) word(code uint32, format string, args ...any) {
	e.line("WORD $0x%08x // %s", code, fmt.Sprintf(format, args...))
}

// groups is the number of vectors of an iteration.
func (e *neon) groups() int {
	if e.kernel.fold != nil {
		return 16
	}
	return 1
}

// write emits the function. R0 to R6 point at the streams, R8 counts iterations, R9 points at the lanes, R10 at the
// constants, and R11 at what a fused kernel is called with.
func (e *neon) write() {
	k := e.kernel
	f := k.frame("R11")
	name, signature := k.assembly(levelNEON)
	fmt.Fprintf(e.out, "\n// func %s%s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, signature, name, f.arguments)
	if k.fused {
		e.line("MOVD call+0(FP), R11")
	}
	for i, at := range f.streams {
		e.line("MOVD %s, R%d", at, i)
	}
	e.line("MOVD %s, R8", f.length)
	e.line("MOVD $constNEON<>(SB), R10")
	top := 32
	if k.fold != nil {
		if k.fused {
			e.line("ADD $FusedCall_lanes, R11, R9")
		} else {
			e.line("MOVD lanes+0(FP), R9")
		}
		e.lanes(0x3dc00000, "LDR")
		top = neonAccumulator
	}
	for _, at := range f.scalars {
		top--
		e.line("FMOVS %s, F%d", at, top)
		e.line("VDUP V%d.S[0], V%d.S4", top, top)
		e.scalars = append(e.scalars, top)
	}
	e.line("LSR $%d, R8, R8", map[int]int{1: 2, 16: 6}[e.groups()])
	e.line("CBZ R8, done")
	fmt.Fprintf(e.out, "loop:\n")
	for e.group = range e.groups() {
		e.body(top)
	}
	for i := range k.streams {
		e.line("ADD $%d, R%d, R%d", 16*e.groups(), i, i)
	}
	e.line("SUB $1, R8, R8")
	e.line("CBNZ R8, loop")
	fmt.Fprintf(e.out, "done:\n")
	if k.fold != nil {
		e.lanes(0x3d800000, "STR")
	}
	e.line("RET")
}

// lanes loads or stores the accumulator.
func (e *neon) lanes(code uint32, name string) {
	for g := range uint32(16) {
		e.word(code|g<<10|9<<5|(neonAccumulator+g), "%s Q%d, [R9, #%d]", name, neonAccumulator+g, 16*g)
	}
}

func (e *neon) body(top int) {
	e.last = e.prog.uses()
	e.vec = newRegisters(0, top)
	e.where = make([]int, len(e.prog.ins))
	for i, in := range e.prog.ins {
		e.where[i] = -1
		switch in.op {
		case opConst:
		case opScalar:
			e.where[i] = e.scalars[in.imm]
		case opAcc:
			e.where[i] = neonAccumulator + e.group
		default:
			e.emit(val(i), in)
		}
	}
}

// operands returns the registers of the operands. Constants are loaded into new ones.
func (e *neon) operands(in ins) (regs []int, spare []int) {
	for _, a := range in.args {
		r := e.where[a]
		if c := e.prog.ins[a]; c.op == opConst {
			r = e.vec.take(e.kernel.name)
			spare = append(spare, r)
			n := uint32(e.consts.number(c.imm))
			e.word(0x3dc00000|n<<10|10<<5|uint32(r), "LDR Q%d, [R10, #%d] // %v", r, 16*n, math.Float32frombits(c.imm))
		}
		regs = append(regs, r)
	}
	return regs, spare
}

// emit writes instruction v. Its result goes to a new register, and then those of operands that are not needed any more
// are free.
func (e *neon) emit(v val, in ins) {
	args, spare := e.operands(in)
	switch in.op {
	case opStore:
		e.word(0x3d800000|uint32(e.group)<<10|in.imm<<5|uint32(args[0]), "STR Q%d, [R%d, #%d]", args[0], in.imm, 16*e.group)
	case opSetAcc:
		e.move(args[0], neonAccumulator+e.group)
	default:
		e.where[v] = e.vec.take(e.kernel.name)
		e.compute(in, args, e.where[v])
	}
	for _, r := range spare {
		e.vec.give(r)
	}
	freed := map[val]bool{}
	for _, a := range in.args {
		switch e.prog.ins[a].op {
		case opConst, opScalar, opAcc:
			continue
		}
		if e.last[a] == int(v) && !freed[a] {
			freed[a] = true
			e.vec.give(e.where[a])
		}
	}
}

func (e *neon) move(from, to int) {
	e.word(0x4ea01c00|uint32(from)<<16|uint32(from)<<5|uint32(to), "MOV V%d.16B, V%d.16B", to, from)
}

// neonCode is the number of an instruction without its registers, and its name.
type neonCode struct {
	code uint32
	name string
}

var neonBinary = map[op]neonCode{
	opAdd: {0x4e20d400, "FADD"}, opSub: {0x4ea0d400, "FSUB"}, opMul: {0x6e20dc00, "FMUL"}, opDiv: {0x6e20fc00, "FDIV"},
	opAnd: {0x4e201c00, "AND"}, opOr: {0x4ea01c00, "ORR"}, opXor: {0x6e201c00, "EOR"}, opAddWord: {0x4ea08400, "ADD"},
	opSubWord: {0x6ea08400, "SUB"}, opFMA: {0x4e20cc00, "FMLA"}, opFNMA: {0x4ea0cc00, "FMLS"},
}

var neonUnary = map[op]neonCode{
	opSqrt: {0x6ea1f800, "FSQRT"}, opToWord: {0x4e21a800, "FCVTNS"}, opToFloat: {0x4e21d800, "SCVTF"},
}

var neonRound = map[uint32]neonCode{
	nearest: {0x4e218800, "FRINTN"}, down: {0x4e219800, "FRINTM"}, up: {0x4ea18800, "FRINTP"},
}

var (
	neonEqual          = neonCode{0x4e20e400, "FCMEQ"}
	neonGreaterOrEqual = neonCode{0x6e20e400, "FCMGE"}
	neonGreater        = neonCode{0x6ea0e400, "FCMGT"}
	neonChoose         = neonCode{0x6e601c00, "BSL"}
	neonNot            = neonCode{0x6e205800, "NOT"}
)

func (e *neon) three(c neonCode, dst, a, b int) {
	e.word(c.code|uint32(b)<<16|uint32(a)<<5|uint32(dst), "%s V%d, V%d, V%d", c.name, dst, a, b)
}

func (e *neon) two(c neonCode, dst, a int) {
	e.word(c.code|uint32(a)<<5|uint32(dst), "%s V%d, V%d", c.name, dst, a)
}

func (e *neon) shift(c neonCode, amount uint32, dst, a int) {
	e.word(c.code|amount<<16|uint32(a)<<5|uint32(dst), "%s V%d, V%d, #%d", c.name, dst, a, amount&31)
}

// compute emits an instruction that makes a value.
func (e *neon) compute(in ins, a []int, dst int) {
	switch in.op {
	case opLoad:
		e.word(0x3dc00000|uint32(e.group)<<10|in.imm<<5|uint32(dst), "LDR Q%d, [R%d, #%d]", dst, in.imm, 16*e.group)
	case opFMA, opFNMA:
		e.move(a[2], dst)
		e.three(neonBinary[in.op], dst, a[0], a[1])
	case opMax:
		e.three(neonGreater, dst, a[0], a[1])
		e.three(neonChoose, dst, a[0], a[1])
	case opMin:
		e.three(neonGreater, dst, a[1], a[0])
		e.three(neonChoose, dst, a[0], a[1])
	case opSelect:
		e.move(a[0], dst)
		e.three(neonChoose, dst, a[1], a[2])
	case opCmp:
		e.compare(in, a, dst)
	case opRound:
		e.two(neonRound[in.imm], dst, a[0])
	case opShiftLeft:
		e.shift(neonCode{0x4f005400, "SHL"}, 32+in.imm, dst, a[0])
	case opShiftRight:
		e.shift(neonCode{0x6f000400, "USHR"}, 64-in.imm, dst, a[0])
	case opShiftSign:
		e.shift(neonCode{0x4f000400, "SSHR"}, 64-in.imm, dst, a[0])
	case opSqrt, opToWord, opToFloat:
		e.two(neonUnary[in.op], dst, a[0])
	default:
		e.three(neonBinary[in.op], dst, a[0], a[1])
	}
}

func (e *neon) compare(in ins, a []int, dst int) {
	switch in.imm {
	case equal:
		e.three(neonEqual, dst, a[0], a[1])
	case less:
		e.three(neonGreater, dst, a[1], a[0])
	case lessEqual:
		e.three(neonGreaterOrEqual, dst, a[1], a[0])
	case greater:
		e.three(neonGreater, dst, a[0], a[1])
	case greaterEqual:
		e.three(neonGreaterOrEqual, dst, a[0], a[1])
	case notEqual, unordered: // unordered is asked of one value only
		e.three(neonEqual, dst, a[0], a[1])
		e.two(neonNot, dst, dst)
	}
}
