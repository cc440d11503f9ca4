package main

import (
	"fmt"
	"math"
)

// kind is what the lanes of a value hold.
type kind byte

const (
	float kind = iota // float32
	word              // uint32
	mask              // true or false
)

// op is an abstract vector instruction. All of them work lane by lane.
type op byte

const (
	opLoad     op = iota // element of stream imm
	opStore              // args[0] becomes the element of stream imm
	opScalar             // parameter imm
	opConst              // the bits imm
	opAcc                // the accumulator
	opSetAcc             // args[0] becomes the accumulator
	opTail               // args[0], or the bits imm in lanes past the end
	opAdd                // a + b
	opSub                // a - b
	opMul                // a * b
	opDiv                // a / b
	opQuotient           // a / b of a parameter b; c has the bits of twice the least quickNumerator
	opSqrt               // square root
	opFMA                // a*b + c, rounded once
	opFNMA               // c - a*b, rounded once
	opMax                // a > b ? a : b
	opMin                // a < b ? a : b
	opRound              // to an integral value, imm is the mode
	opScale              // a * 2^b, rounded once; b is integral or NaN, from -160 to 160
	opCmp                // comparison imm, a mask
	opSelect             // args[0] ? args[1] : args[2]
	opAnd                // of words
	opOr
	opXor
	opAddWord
	opSubWord
	opShiftLeft  // by imm
	opShiftRight // by imm, zeros come in
	opShiftSign  // by imm, copies of the sign bit come in
	opToWord     // nearest integer, even on ties
	opToFloat    // of a signed integer
	opCopySign   // |a| with the sign of b
	opExponent   // exponent of a as a float, -Inf for 0
	opFraction   // a divided by the power of two that brings it from 0.75 to 1.5
	opLogEdges   // a, but at the edges of the domain of a logarithm what log(b) is
	opFloatBits  // float of these bits
	opWordBits   // bits of this float
)

// modes of opRound
const (
	nearest uint32 = iota
	down
	up
)

// comparisons of opCmp; those with NaN are false, but for notEqual and unordered
const (
	equal uint32 = iota
	less
	lessEqual
	unordered
	notEqual
	greater
	greaterEqual
)

// val is a value of a program: the number of the instruction that makes it.
type val int

type ins struct {
	op   op
	args []val
	imm  uint32
	kind kind
}

// program is the straight-line body of a loop, in single assignment form. Equal instructions are entered once.
type program struct {
	ins  []ins
	seen map[string]val
	has  abilities
}

// abilities are the abstract instructions that not every target has. Others put them together.
type abilities struct {
	scale bool // opScale
	parts bool // opCopySign, opExponent, opFraction, opLogEdges
	quick bool // opQuotient
}

func newProgram(has abilities) *program {
	return &program{seen: map[string]val{}, has: has}
}

func (p *program) add(o op, k kind, imm uint32, args ...val) val {
	key := fmt.Sprint(o, imm, args)
	if v, ok := p.seen[key]; ok && o != opStore {
		return v
	}
	v := val(len(p.ins))
	p.ins = append(p.ins, ins{o, args, imm, k})
	p.seen[key] = v
	return v
}

func (p *program) load(stream int, k kind) val { return p.add(opLoad, k, uint32(stream)) }
func (p *program) scalar(i int) val            { return p.add(opScalar, float, uint32(i)) }
func (p *program) bits(b uint32) val           { return p.add(opConst, word, b) }
func (p *program) num(x float32) val           { return p.add(opConst, float, math.Float32bits(x)) }

func (p *program) plus(a, b val) val         { return p.add(opAdd, float, 0, a, b) }
func (p *program) minus(a, b val) val        { return p.add(opSub, float, 0, a, b) }
func (p *program) times(a, b val) val        { return p.add(opMul, float, 0, a, b) }
func (p *program) over(a, b val) val         { return p.add(opDiv, float, 0, a, b) }
func (p *program) sqrt(a val) val            { return p.add(opSqrt, float, 0, a) }
func (p *program) fma(a, b, c val) val       { return p.add(opFMA, float, 0, a, b, c) }
func (p *program) fnma(a, b, c val) val      { return p.add(opFNMA, float, 0, a, b, c) }
func (p *program) max(a, b val) val          { return p.add(opMax, float, 0, a, b) }
func (p *program) min(a, b val) val          { return p.add(opMin, float, 0, a, b) }
func (p *program) round(m uint32, a val) val { return p.add(opRound, float, m, a) }

func (p *program) cmp(how uint32, a, b val) val { return p.add(opCmp, mask, how, a, b) }
func (p *program) choose(m, a, b val) val       { return p.add(opSelect, p.ins[a].kind, 0, m, a, b) }

func (p *program) and(a, b val) val           { return p.add(opAnd, word, 0, a, b) }
func (p *program) or(a, b val) val            { return p.add(opOr, word, 0, a, b) }
func (p *program) xor(a, b val) val           { return p.add(opXor, word, 0, a, b) }
func (p *program) addWord(a, b val) val       { return p.add(opAddWord, word, 0, a, b) }
func (p *program) subWord(a, b val) val       { return p.add(opSubWord, word, 0, a, b) }
func (p *program) left(a val, by uint32) val  { return p.add(opShiftLeft, word, by, a) }
func (p *program) right(a val, by uint32) val { return p.add(opShiftRight, word, by, a) }
func (p *program) arith(a val, by uint32) val { return p.add(opShiftSign, word, by, a) }
func (p *program) toWord(a val) val           { return p.add(opToWord, word, 0, a) }
func (p *program) toFloat(a val) val          { return p.add(opToFloat, float, 0, a) }
func (p *program) asFloat(a val) val          { return p.add(opFloatBits, float, 0, a) }
func (p *program) asWord(a val) val           { return p.add(opWordBits, word, 0, a) }
func (p *program) abs(a val) val              { return p.asFloat(p.and(p.asWord(a), p.bits(0x7fffffff))) }
func (p *program) neg(a val) val              { return p.asFloat(p.xor(p.asWord(a), p.bits(1<<31))) }

// scale returns a * 2^n. Where it is put together, the first of two factors is harmless: a is from 0.5 to 2 or n is 0
// or the product is normal, so that only the second product rounds.
func (p *program) scale(a, n val) val {
	if p.has.scale {
		return p.add(opScale, float, 0, a, n)
	}
	whole := p.toWord(n)
	half := p.arith(whole, 1)
	rest := p.subWord(whole, half)
	return p.times(p.times(a, p.powerOfTwo(half)), p.powerOfTwo(rest))
}

// powerOfTwo returns 2^n for an integer n from -126 to 127.
func (p *program) powerOfTwo(n val) val {
	return p.asFloat(p.left(p.addWord(n, p.bits(127)), 23))
}

// uses returns, for each value, the last instruction that needs it.
func (p *program) uses() []int {
	last := make([]int, len(p.ins))
	for i, in := range p.ins {
		last[i] = i
		for _, a := range in.args {
			last[a] = i
		}
	}
	return last
}
