package main

// vexNames are the mnemonics of operations with two operands; AVX-512 has other names for some.
var vexNames = map[op]string{
	opAdd: "VADDPS", opSub: "VSUBPS", opMul: "VMULPS", opDiv: "VDIVPS", opMax: "VMAXPS", opMin: "VMINPS",
	opAnd: "VPAND", opOr: "VPOR", opXor: "VPXOR", opAddWord: "VPADDD", opSubWord: "VPSUBD", opScale: "VSCALEFPS",
}

var evexNames = map[op]string{opAnd: "VPANDD", opOr: "VPORD", opXor: "VPXORD"}

var commutes = map[op]bool{opAdd: true, opMul: true, opAnd: true, opOr: true, opXor: true, opAddWord: true}

var shiftNames = map[op]string{opShiftLeft: "VPSLLD", opShiftRight: "VPSRLD", opShiftSign: "VPSRAD"}

var convertNames = map[op]string{
	opExponent: "VGETEXPPS", opToWord: "VCVTPS2DQ", opToFloat: "VCVTDQ2PS", opSqrt: "VSQRTPS",
}

// predicates are the comparisons, as VCMPPS numbers them: none raises an exception.
var predicates = map[uint32]int{
	equal: 0x00, less: 0x11, lessEqual: 0x12, unordered: 0x03, notEqual: 0x04, greater: 0x1e, greaterEqual: 0x1d,
}

// roundModes are the immediates of VROUNDPS and VRNDSCALEPS.
var roundModes = map[uint32]int{nearest: 8, down: 9, up: 10}

// emit writes instruction v.
func (e *x86) emit(v val, in ins) {
	switch in.op {
	case opLoad:
		e.load(v, in)
	case opStore:
		e.store(in)
	case opAcc:
		e.where[v] = e.accumulator(e.group)
	case opSetAcc:
		if from := e.where[in.args[0]]; from != e.accumulator(e.group) {
			e.line("VMOVAPS %s, %s", e.reg(from), e.reg(e.accumulator(e.group)))
		}
	case opTail:
		e.keepInside(v, in)
	case opFMA, opFNMA:
		e.fused(v, in)
	case opQuotient:
		e.quotient(v, in)
	case opCmp:
		e.compare(v, in)
	case opSelect:
		e.choose(v, in)
	case opRound:
		e.where[v] = e.target(v)
		name := map[bool]string{true: "VRNDSCALEPS", false: "VROUNDPS"}[e.masks]
		e.line("%s $%d, %s, %s", name, roundModes[in.imm], e.reg(e.where[in.args[0]]), e.reg(e.where[v]))
	case opShiftLeft, opShiftRight, opShiftSign:
		e.where[v] = e.target(v)
		e.line("%s $%d, %s, %s", shiftNames[in.op], in.imm, e.reg(e.where[in.args[0]]), e.reg(e.where[v]))
	case opToWord, opToFloat, opSqrt, opExponent:
		e.where[v] = e.target(v)
		e.line("%s %s, %s", convertNames[in.op], e.reg(e.where[in.args[0]]), e.reg(e.where[v]))
	case opFraction:
		e.where[v] = e.target(v)
		e.line("VGETMANTPS $3, %s, %s", e.reg(e.where[in.args[0]]), e.reg(e.where[v]))
	case opCopySign, opLogEdges:
		e.overwrite(v, in)
	default:
		e.binary(v, in)
	}
}

// logTable is the table of VFIXUPIMMPS that makes the edges of a logarithm: four bits for each kind of operand.
const logTable = 2<<0 | 2<<4 | 4<<8 | 0<<12 | 3<<16 | 5<<20 | 3<<24 | 0<<28

// overwrite emits the instructions that change their first operand.
func (e *x86) overwrite(v val, in ins) {
	a, b := e.where[in.args[0]], e.reg(e.where[in.args[1]])
	e.where[v] = a
	if !e.mayWrite(in.args[0], v) || in.args[0] == in.args[1] {
		e.where[v] = e.vec.take(e.kernel.name)
		e.line("VMOVAPS %s, %s", e.reg(a), e.reg(e.where[v]))
	}
	if in.op == opLogEdges {
		e.line("VFIXUPIMMPS.BCST $0, const%s<>+%d(SB), %s, %s", e.name, 32*e.consts.number(logTable), b, e.reg(e.where[v]))
		return
	}
	e.line("VPTERNLOGD.BCST $0xd8, const%s<>+%d(SB), %s, %s", e.name, 32*e.consts.number(1<<31), b, e.reg(e.where[v]))
}

func (e *x86) binary(v val, in ins) {
	name := vexNames[in.op]
	if other, ok := evexNames[in.op]; ok && e.masks {
		name = other
	}
	a, b := in.args[0], in.args[1]
	if e.isConst(a) && commutes[in.op] {
		a, b = b, a
	}
	first, temporary := e.inRegister(a)
	suffix, second := e.operand(b)
	e.where[v] = e.target(v)
	e.line("%s%s %s, %s, %s", name, suffix, second, e.reg(first), e.reg(e.where[v]))
	if temporary {
		e.vec.give(first)
	}
}

// mayWrite tells whether the register of an operand may become that of the result v.
func (e *x86) mayWrite(a, v val) bool { return e.owned(a) && e.last[a] == int(v) }

// fused emits a*b + c or c - a*b, which overwrites one of the operands.
func (e *x86) fused(v val, in ins) {
	a, b, c := in.args[0], in.args[1], in.args[2]
	name := map[op]string{opFMA: "VFMADD", opFNMA: "VFNMADD"}[in.op]
	if e.isConst(a) || e.mayWrite(b, v) && !e.isConst(b) && !e.mayWrite(a, v) {
		a, b = b, a
	}
	if !e.isConst(c) && e.mayWrite(c, v) && c != a && c != b {
		suffix, second := e.operand(b)
		e.where[v] = e.where[c]
		e.line("%s231PS%s %s, %s, %s", name, suffix, second, e.reg(e.where[a]), e.reg(e.where[c]))
		return
	}
	var spare []int
	dst := e.where[a]
	if !e.mayWrite(a, v) || a == b || a == c {
		dst = e.vec.take(e.kernel.name)
		e.line("VMOVAPS %s, %s", e.reg(e.where[a]), e.reg(dst))
	}
	if e.isConst(c) {
		factor, temporary := e.inRegister(b)
		if temporary {
			spare = append(spare, factor)
		}
		suffix, third := e.operand(c)
		e.line("%s213PS%s %s, %s, %s", name, suffix, third, e.reg(factor), e.reg(dst))
	} else {
		suffix, second := e.operand(b)
		e.line("%s132PS%s %s, %s, %s", name, suffix, second, e.reg(e.where[c]), e.reg(dst))
	}
	e.where[v] = dst
	for _, r := range spare {
		e.vec.give(r)
	}
}

func (e *x86) compare(v val, in ins) {
	first, temporary := e.inRegister(in.args[0])
	suffix, second := e.operand(in.args[1])
	letter := "K"
	if e.masks {
		e.where[v] = e.pred.take(e.kernel.name)
	} else {
		e.where[v] = e.target(v)
		letter = e.letter
	}
	e.line("VCMPPS%s $%d, %s, %s, %s%d", suffix, predicates[in.imm], second, e.reg(first), letter, e.where[v])
	if temporary {
		e.vec.give(first)
	}
}

func (e *x86) choose(v val, in ins) {
	m, a, b := in.args[0], in.args[1], in.args[2]
	other, temporary := e.inRegister(b)
	suffix, yes := e.operand(a)
	e.where[v] = e.target(v)
	if e.masks {
		e.line("VBLENDMPS%s %s, %s, K%d, %s", suffix, yes, e.reg(other), e.where[m], e.reg(e.where[v]))
	} else {
		e.line("VBLENDVPS %s, %s, %s, %s", e.reg(e.where[m]), yes, e.reg(other), e.reg(e.where[v]))
	}
	if temporary {
		e.vec.give(other)
	}
}

// keepInside puts the bits imm into the lanes past the end.
func (e *x86) keepInside(v val, in ins) {
	other := e.literal(in.imm)
	from := e.reg(e.where[in.args[0]])
	e.where[v] = e.target(v)
	if e.masks {
		e.line("VBLENDMPS %s, %s, K1, %s", from, e.reg(other), e.reg(e.where[v]))
	} else {
		m := e.tailMask()
		e.line("VBLENDVPS %s, %s, %s, %s", e.reg(m), from, e.reg(other), e.reg(e.where[v]))
		e.vec.give(m)
	}
	e.vec.give(other)
}

// literal returns a new register with these bits in every lane.
func (e *x86) literal(bits uint32) int {
	r := e.vec.take(e.kernel.name)
	e.line("VBROADCASTSS const%s<>+%d(SB), %s", e.name, 32*e.consts.number(bits), e.reg(r))
	return r
}

// tailMask returns a new register with the mask of the lanes before the end.
func (e *x86) tailMask() int {
	r := e.vec.take(e.kernel.name)
	e.line("VMOVDQU (R13), %s", e.reg(r))
	return r
}

// load emits the load of a vector.
func (e *x86) load(v val, in ins) {
	at := e.address(int(in.imm))
	zero, under := "", ""
	if e.tail && e.masks {
		zero, under = ".Z", "K1, "
	}
	if e.bank(v) == e.pred {
		e.where[v] = e.pred.take(e.kernel.name)
		bytes := e.vec.take(e.kernel.name)
		e.line("VMOVDQU8%s %s, %sX%d", zero, at, under, bytes)
		e.line("VPTESTMB X%d, X%d, K%d", bytes, bytes, e.where[v])
		e.vec.give(bytes)
		return
	}
	r := e.vec.take(e.kernel.name)
	e.where[v] = r
	switch e.kernel.streams[in.imm].elem {
	case truth:
		e.line("VPMOVZXBD %s, %s", at, e.reg(r))
		e.line("VPSLLD $31, %s, %s", e.reg(r), e.reg(r))
	case u16:
		e.line("VPMOVZXWD%s %s, %s%s", zero, at, under, e.reg(r))
	default:
		if e.tail && !e.masks {
			m := e.tailMask()
			e.line("VMASKMOVPS %s, %s, %s", at, e.reg(m), e.reg(r))
			e.vec.give(m)
			return
		}
		e.line("VMOVUPS%s %s, %s%s", zero, at, under, e.reg(r))
		e.prefetch(int(in.imm))
	}
}

// prefetch emits the prefetch of the line of a stream that comes some time after the one that is loaded. The processor
// by itself is late with several streams, at each page of each of them; and a kernel that has much to compute has time
// for it.
func (e *x86) prefetch(stream int) {
	if at := 4 * e.width * e.group; e.kernel.streams[stream].prefetch && !e.tail && at%64 == 0 {
		e.line("PREFETCHT1 %d(%s)(R12*4)", at, pointers[stream])
	}
}

// store emits the store of a vector.
func (e *x86) store(in ins) {
	at := e.address(int(in.imm))
	r := e.where[in.args[0]]
	under := ""
	if e.tail && e.masks {
		under = "K1, "
	}
	switch e.kernel.streams[in.imm].elem {
	case truth:
		e.storeTruth(r, at, under)
	case u16:
		e.storeHalf(r, at, under)
	default:
		if !e.tail || e.masks {
			e.line("VMOVUPS %s, %s%s", e.reg(r), under, at)
			return
		}
		m := e.tailMask()
		e.line("VMASKMOVPS %s, %s, %s", e.reg(r), e.reg(m), at)
		e.vec.give(m)
	}
}

// storeTruth writes a mask as bytes 0 and 1.
func (e *x86) storeTruth(r int, at, under string) {
	if !e.masks {
		e.line("VMOVMSKPS %s, BX", e.reg(r))
		e.line("PDEPQ R12, BX, BX")
		e.line("MOVQ BX, %s", at)
		return
	}
	ones := e.literal(0x01010101)
	e.line("VMOVDQU8.Z X%d, K%d, X%d", ones, r, ones)
	e.line("VMOVDQU8 X%d, %s%s", ones, under, at)
	e.vec.give(ones)
}

// storeHalf writes the low halves of words.
func (e *x86) storeHalf(r int, at, under string) {
	if e.masks {
		e.line("VPMOVDW %s, %s%s", e.reg(r), under, at)
		return
	}
	t := e.vec.take(e.kernel.name)
	e.line("VPACKUSDW %s, %s, %s", e.reg(r), e.reg(r), e.reg(t))
	e.line("VPERMQ $8, %s, %s", e.reg(t), e.reg(t))
	e.line("VMOVDQU X%d, %s", t, at)
	e.vec.give(t)
}
