package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// portableFile returns the kernels in Go.
func portableFile(list []kernel) string {
	var out strings.Builder
	out.WriteString(header + "package vec\n\nimport (\n\t\"math\"\n\n" +
		"\t\"github.com/goart-dev/art/backend/device/cpu/internal/fma\"\n)\n")
	for _, k := range append(list, waveKernel()) {
		portable(&out, k)
	}
	out.WriteString(level{"Portable", func(kernel) int { return 1 }, ""}.table())
	return out.String()
}

func portable(out *strings.Builder, k kernel) {
	fmt.Fprintf(out, "\n// %sPortable %s.\nfunc %sPortable%s {\n", k.name, k.does, k.name, k.signature())
	first := k.streams[0].name
	switch {
	case k.fused:
		k.openCall(out)
	case k.fold != nil:
		out.WriteString(ownLanes(k))
		fallthrough
	default:
		var names, cuts []string
		for _, s := range k.streams[1:] {
			names, cuts = append(names, s.name), append(cuts, fmt.Sprintf("%s[:len(%s)]", s.name, first))
		}
		if len(names) > 0 {
			fmt.Fprintf(out, "\t%s = %s\n", strings.Join(names, ", "), strings.Join(cuts, ", "))
		}
	}
	fmt.Fprintf(out, "\tfor i := range %s {\n", first)
	g := goBody{kernel: k, program: k.program(abilities{scale: true}).prune(), out: out}
	g.write()
	out.WriteString("\t}\n")
	switch {
	case k.fold != nil && k.fused:
		fmt.Fprintf(out, "\tcall.Sum = %s(lanes)\n", k.fold.tree)
	case k.fold != nil:
		fmt.Fprintf(out, "\treturn %s(lanes)\n", k.fold.tree)
	}
	out.WriteString("}\n")
}

// openCall takes the operands out of a FusedCall.
func (k kernel) openCall(out *strings.Builder) {
	var names, values []string
	ins, outs := 0, 0
	for _, s := range k.streams {
		names = append(names, s.name)
		if s.write {
			values = append(values, fmt.Sprintf("floats(call.Out[%d], n)", outs))
			outs++
		} else {
			values = append(values, fmt.Sprintf("floats(call.In[%d], n)", ins))
			ins++
		}
	}
	out.WriteString("\tn := call.N\n" + wrap("\t"+strings.Join(names, ", ")+" := ", 2, values) + "\n")
	values = nil
	for i := range k.scalars {
		values = append(values, fmt.Sprintf("s[%d]", i))
	}
	if len(values) > 0 {
		out.WriteString("\ts := &call.Scalars\n" + wrap("\t"+strings.Join(k.scalars, ", ")+" := ", 2, values) + "\n")
	}
	if k.fold != nil {
		out.WriteString("\tlanes := &call.lanes\n")
	}
}

// ownLanes returns the statements that make lanes where the caller has none.
func ownLanes(k kernel) string {
	return fmt.Sprintf("\tif lanes == nil {\n\t\tlanes = filled(%s)\n\t}\n", k.fold.start)
}

// goBody writes the body of a loop in Go. A value that is used once is an expression where it is used, unless the line
// becomes too long; the others have names.
type goBody struct {
	kernel
	*program
	out   *strings.Builder
	texts []goText // of values
	names int
}

// goText is how a value is written.
type goText struct {
	text    string
	joined  bool // by an operator: it needs parentheses where another one follows
	pending bool // it has no name yet, but may have one
}

const goColumns = 106 // of an expression, most of the time

func (g *goBody) write() {
	g.texts = make([]goText, len(g.ins))
	uses, effects := make([]int, len(g.ins)), 0
	for _, in := range g.ins {
		for _, a := range in.args {
			uses[a]++
		}
		if in.op == opStore || in.op == opSetAcc {
			effects++
		}
	}
	for i, in := range g.ins {
		switch in.op {
		case opStore:
			g.statement(g.streams[in.imm].name+"[i] = %s", in)
		case opSetAcc:
			g.statement("lanes[i%%64] = %s", in)
		default:
			g.texts[i] = g.value(in)
			// What is stored may lie over what is loaded.
			if g.texts[i].pending && (uses[i] > 1 || in.op == opLoad && effects > 1) {
				g.name(val(i))
			}
		}
	}
}

// statement writes what an instruction changes.
func (g *goBody) statement(format string, in ins) {
	x := g.texts[in.args[0]].text
	if in.op == opStore {
		if e := g.streams[in.imm].elem; e == u16 || e == i32 {
			x = fmt.Sprintf("%s(%s)", e, x)
		}
	}
	fmt.Fprintf(g.out, "\t\t"+format+"\n", x)
}

// name gives a value a name: that of the stream that it is loaded from, or a number.
func (g *goBody) name(v val) {
	var name string
	if in := g.ins[v]; in.op == opLoad {
		name = g.streams[in.imm].name + "i"
	} else {
		g.names++
		name = fmt.Sprintf("t%d", g.names)
	}
	fmt.Fprintf(g.out, "\t\t%s := %s\n", name, g.texts[v].text)
	g.texts[v] = goText{text: name}
}

// shorten names operands, the longest first, until an instruction fits into a line.
func (g *goBody) shorten(in ins, more int) {
	for {
		size, longest := more, val(-1)
		for _, a := range in.args {
			size += len(g.texts[a].text)
			if g.texts[a].pending && (longest < 0 || len(g.texts[a].text) > len(g.texts[longest].text)) {
				longest = a
			}
		}
		if size <= goColumns || longest < 0 {
			return
		}
		g.name(longest)
	}
}

// value returns how an instruction is written.
func (g *goBody) value(in ins) goText {
	switch in.op {
	case opScalar:
		return goText{text: g.scalars[in.imm]}
	case opConst:
		if in.kind == word {
			return goText{text: map[bool]string{true: "1", false: fmt.Sprintf("0x%x", in.imm)}[in.imm == 1]}
		}
		return goText{text: goFloat(math.Float32frombits(in.imm))}
	case opTail:
		return g.texts[in.args[0]]
	case opLoad:
		text := g.streams[in.imm].name + "[i]"
		if e := g.streams[in.imm].elem; e == u16 || e == i32 {
			text = "uint32(" + text + ")"
		}
		return goText{text: text, pending: true}
	}
	format := goFormats[in.op]
	switch in.op {
	case opSelect:
		format = goSelects[in.kind]
	case opRound:
		format = "float32(" + goRounds[in.imm] + "(float64(%s)))"
	case opCmp:
		format = goComparisons[in.imm]
	case opShiftLeft, opShiftRight, opShiftSign:
		format = fmt.Sprintf(format, in.imm)
	}
	g.shorten(in, len(format))
	operator := slices.Contains(goOperators, in.op) || in.op == opCmp && in.imm != unordered
	args := make([]any, strings.Count(format, "%s"))
	for i := range args {
		t := g.texts[in.args[i]]
		if args[i] = t.text; t.joined && (operator || in.op == opFNMA && i == 0) {
			args[i] = "(" + t.text + ")"
		}
	}
	return goText{
		text: fmt.Sprintf(format, args...), joined: operator && !strings.HasPrefix(format, "float32("), pending: true,
	}
}

// goFloat returns a number as a constant: in decimal if that is short.
func goFloat(x float32) string {
	if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) || x == 0 && math.Signbit(f) {
		return fmt.Sprintf("math.Float32frombits(0x%08x)", math.Float32bits(x))
	}
	if short := strconv.FormatFloat(float64(x), 'g', -1, 64); len(short) <= 5 {
		return short
	}
	return fmt.Sprintf("%x", x)
}

var goFormats = map[op]string{
	opAcc: "lanes[i%%64]", opAdd: "%s + %s", opSub: "%s - %s", opMul: "float32(%s * %s)", opDiv: "%s / %s",
	opSqrt: "float32(math.Sqrt(float64(%s)))", opFMA: "fma.Float32(%s, %s, %s)", opFNMA: "fma.Float32(-%s, %s, %s)",
	opMax: "larger(%s, %s)", opMin: "smaller(%s, %s)", opScale: "timesPowerOfTwo(%s, %s)",
	opAnd: "%s & %s", opOr: "%s | %s", opXor: "%s ^ %s", opAddWord: "%s + %s", opSubWord: "%s - %s",
	opShiftLeft: "%%s << %d", opShiftRight: "%%s >> %d", opShiftSign: "uint32(int32(%%s) >> %d)",
	opToWord: "uint32(int32(math.RoundToEven(float64(%s))))", opToFloat: "float32(int32(%s))",
	opFloatBits: "math.Float32frombits(%s)", opWordBits: "math.Float32bits(%s)",
}

// goOperators are those whose format joins its operands by an operator. A product is rounded by a conversion, which
// keeps compilers from fusing it with a sum.
var goOperators = []op{
	opAdd, opSub, opMul, opDiv, opAnd, opOr, opXor, opAddWord, opSubWord, opShiftLeft, opShiftRight,
}

var goSelects = map[kind]string{float: "choose(%s, %s, %s)", word: "chooseWord(%s, %s, %s)"}

var goRounds = map[uint32]string{nearest: "math.RoundToEven", down: "math.Floor", up: "math.Ceil"}

var goComparisons = map[uint32]string{
	equal: "%s == %s", less: "%s < %s", lessEqual: "%s <= %s", notEqual: "%s != %s", greater: "%s > %s",
	greaterEqual: "%s >= %s", unordered: "isNaN(%s)", // which is asked of one value only
}
