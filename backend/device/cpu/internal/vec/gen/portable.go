package main

import (
	"fmt"
	"math"
	"strings"
)

// portableFile returns the kernels in Go.
func portableFile(list []kernel) string {
	var out strings.Builder
	out.WriteString(header + "package vec\n\nimport (\n\t\"math\"\n\n" +
		"\t\"github.com/goart-dev/art/backend/device/cpu/internal/fma\"\n)\n")
	for _, k := range list {
		portable(&out, k)
	}
	return out.String()
}

func portable(out *strings.Builder, k kernel) {
	p := k.program(abilities{scale: true}).prune()
	fmt.Fprintf(out, "\n// %sPortable %s.\nfunc %sPortable%s {\n", k.name, k.does, k.name, k.signature())
	if k.fold != nil {
		out.WriteString(ownLanes(k))
	}
	first := k.streams[0].name
	for _, s := range k.streams[1:] {
		fmt.Fprintf(out, "\t%s = %s[:len(%s)]\n", s.name, s.name, first)
	}
	fmt.Fprintf(out, "\tfor i := range %s {\n", first)
	for i, in := range p.ins {
		if line := goLine(k, p, i, in); line != "" {
			fmt.Fprintf(out, "\t\t%s\n", line)
		}
	}
	out.WriteString("\t}\n")
	if k.fold != nil {
		fmt.Fprintf(out, "\treturn %s(lanes)\n", k.fold.tree)
	}
	out.WriteString("}\n")
}

// ownLanes returns the statements that make lanes where the caller has none.
func ownLanes(k kernel) string {
	return fmt.Sprintf("\tvar own [64]float32\n\tif lanes == nil {\n"+
		"\t\tlanes = &own\n\t\tfillPortable(lanes[:], %s)\n\t}\n",
		k.fold.start)
}

// goLine returns the statement of an instruction.
func goLine(k kernel, p *program, i int, in ins) string {
	switch in.op {
	case opConst, opScalar, opTail:
		return "" // stand where they are used
	case opStore:
		s, x := k.streams[in.imm], goValue(k, p, in.args[0])
		if s.elem == u16 || s.elem == i32 {
			x = fmt.Sprintf("%s(%s)", s.elem, x)
		}
		return fmt.Sprintf("%s[i] = %s", s.name, x)
	case opSetAcc:
		return fmt.Sprintf("lanes[i%%64] = %s", goValue(k, p, in.args[0]))
	}
	return fmt.Sprintf("v%d := %s", i, goExpression(k, p, in))
}

// goValue returns an operand.
func goValue(k kernel, p *program, v val) string {
	switch in := p.ins[v]; in.op {
	case opScalar:
		return k.scalars[in.imm]
	case opConst:
		if in.kind == word {
			return fmt.Sprintf("uint32(0x%x)", in.imm)
		}
		return goFloat(math.Float32frombits(in.imm))
	case opTail:
		return goValue(k, p, in.args[0])
	}
	return fmt.Sprintf("v%d", v)
}

func goFloat(x float32) string {
	if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) || x == 0 {
		return fmt.Sprintf("math.Float32frombits(0x%08x)", math.Float32bits(x))
	}
	return fmt.Sprintf("float32(%x)", x)
}

var goFormats = map[op]string{
	opAcc: "lanes[i%%64]", opAdd: "%s + %s", opSub: "%s - %s", opMul: "float32(%s * %s)", opDiv: "%s / %s",
	opSqrt: "float32(math.Sqrt(float64(%s)))", opFMA: "fma.Float32(%s, %s, %s)", opFNMA: "fma.Float32(-%s, %s, %s)",
	opMax: "larger(%s, %s)",
	opMin: "smaller(%s, %s)", opScale: "timesPowerOfTwo(%s, %s)", opAnd: "%s & %s", opOr: "%s | %s", opXor: "%s ^ %s",
	opAddWord: "%s + %s", opSubWord: "%s - %s", opToWord: "uint32(int32(math.RoundToEven(float64(%s))))",
	opToFloat: "float32(int32(%s))", opFloatBits: "math.Float32frombits(%s)",
	opWordBits: "math.Float32bits(%s)",
}

var goSelects = map[kind]string{float: "choose(%s, %s, %s)", word: "chooseWord(%s, %s, %s)"}

var goRounds = map[uint32]string{nearest: "math.RoundToEven", down: "math.Floor", up: "math.Ceil"}

var goComparisons = map[uint32]string{
	equal: "%s == %s", less: "%s < %s", lessEqual: "%s <= %s", unordered: "isNaN(%s) || isNaN(%s)", notEqual: "%s != %s",
	greater: "%s > %s", greaterEqual: "%s >= %s",
}

// goExpression returns the right side of the statement of an instruction.
func goExpression(k kernel, p *program, in ins) string {
	args := make([]any, len(in.args))
	for j, a := range in.args {
		args[j] = goValue(k, p, a)
	}
	switch in.op {
	case opLoad:
		if e := k.streams[in.imm].elem; e == u16 || e == i32 {
			return fmt.Sprintf("uint32(%s[i])", k.streams[in.imm].name)
		}
		return k.streams[in.imm].name + "[i]"
	case opSelect:
		return fmt.Sprintf(goSelects[in.kind], args...)
	case opRound:
		return fmt.Sprintf("float32(%s(float64(%s)))", goRounds[in.imm], args[0])
	case opCmp:
		return fmt.Sprintf(goComparisons[in.imm], args...)
	case opShiftLeft:
		return fmt.Sprintf("%s << %d", args[0], in.imm)
	case opShiftRight:
		return fmt.Sprintf("%s >> %d", args[0], in.imm)
	case opShiftSign:
		return fmt.Sprintf("uint32(int32(%s) >> %d)", args[0], in.imm)
	}
	return fmt.Sprintf(goFormats[in.op], args...)
}
