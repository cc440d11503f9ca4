package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// formula is a sequence of operations that becomes one kernel, with the roundings of each of them. It is written once:
// the kernel is made of it, and the table by which a compiler finds the sequence.
type formula struct {
	name     string
	in       string // streams that it reads
	scalars  string
	out      string // results that are stored; the others are at hand within the kernel only
	prefetch string // streams that are prefetched
	does     string // name = expression, separated by semicolons; sum(name) gathers a result
}

// formulas are what graphs of models and their gradients have, longer ones before those that are a part of them.
func formulas() []formula {
	return []formula{
		{"adamW", "p m v g", "clip b1 r1 b2 r2 c1 c2 eps decay rate", "newP newM newV", "p m v g",
			"s = g*clip; newM = m*b1 + s*r1; newV = v*b2 + (s*s)*r2; newP = p - ((newM/c1)/(sqrt(newV/c2)+eps) + p*decay)*rate"},
		{"squareMean", "v g", "b r", "y", "v g", "y = v*b + (g*g)*r"},
		{"mean", "m g", "b r", "y", "m g", "y = m*b + g*r"},
		{"swiGLUSlope", "a b", "one", "u y d", "a b", "s = logistic(a); u = a*s; y = u*b; d = s*((one-s)*a + one)"},
		{"swiGLU", "a b", "", "y", "a b", "y = (a*logistic(a))*b"},
		{"expSum", "x", "top", "e", "x", "e = exp(x - top); sum(e)"},
		{"dot", "a b", "", "", "", "y = a*b; sum(y)"},
		{"weightedQuotient", "a w", "r", "y", "a", "y = (a/r)*w"},
		{"productSum", "a b c", "", "y", "a b c", "y = a*b + c"},
	}
}

// step is an operation of a formula: on inputs, scalars and earlier steps, in this order of numbers.
type step struct {
	op   string // as Go writes it
	a, b int    // b is -1 for one operand
}

// steps are a formula taken apart.
type steps struct {
	formula
	streams, scalars []string
	list             []step
	at               map[string]int // number of an input, a scalar or a result
	stored           []int
	sum              int // -1 for none
}

func (f formula) steps() *steps {
	s := &steps{formula: f, streams: strings.Fields(f.in), scalars: strings.Fields(f.scalars), at: map[string]int{},
		sum: -1}
	for i, name := range append(strings.Fields(f.in), s.scalars...) {
		s.at[name] = i
	}
	for _, text := range strings.Split(f.does, ";") {
		name, right, ok := strings.Cut(text, "=")
		if !ok {
			s.sum = s.at[strings.Trim(strings.TrimPrefix(strings.TrimSpace(text), "sum"), "()")]
			continue
		}
		e, err := parser.ParseExpr(right)
		if err != nil {
			panic(fmt.Sprintf("%s: %s: %v", f.name, text, err))
		}
		s.at[strings.TrimSpace(name)] = s.add(e)
	}
	for _, name := range strings.Fields(f.out) {
		s.stored = append(s.stored, s.at[name])
	}
	return s
}

// unaryOps and binaryOps are the operations of package vec, as a formula writes them.
var unaryOps = map[string]string{"exp": "OpExp", "logistic": "OpSigmoid", "sqrt": "OpSqrt"}

var binaryOps = map[token.Token]string{token.ADD: "OpAdd", token.SUB: "OpSub", token.MUL: "OpMul", token.QUO: "OpDiv"}

// add returns the number of an expression, whose steps it adds.
func (s *steps) add(e ast.Expr) int {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return s.add(e.X)
	case *ast.Ident:
		if i, ok := s.at[e.Name]; ok {
			return i
		}
	case *ast.CallExpr:
		if op, ok := unaryOps[e.Fun.(*ast.Ident).Name]; ok {
			return s.step(op, s.add(e.Args[0]), -1)
		}
	case *ast.BinaryExpr:
		if op, ok := binaryOps[e.Op]; ok {
			a := s.add(e.X)
			return s.step(op, a, s.add(e.Y))
		}
	}
	panic(fmt.Sprintf("%s: an expression that a formula cannot have: %v", s.name, e))
}

func (s *steps) step(op string, a, b int) int {
	s.list = append(s.list, step{op, a, b})
	return len(s.streams) + len(s.scalars) + len(s.list) - 1
}

// stepCode says how a kernel does a step.
var stepCode = map[string]func(p *program, a, b val) val{
	"OpAdd": (*program).plus, "OpSub": (*program).minus, "OpMul": (*program).times, "OpDiv": (*program).over,
	"OpSqrt":    func(p *program, a, _ val) val { return p.sqrt(a) },
	"OpExp":     func(p *program, a, _ val) val { return p.exp(a) },
	"OpSigmoid": func(p *program, a, _ val) val { return p.sigmoid(a) },
}

// code is stepCode, with divisions by a number told from others.
func (s *steps) code(t step) func(p *program, a, b val) val {
	if number := t.b >= len(s.streams) && t.b < len(s.streams)+len(s.scalars); number && t.op == "OpDiv" {
		return (*program).overNumber
	}
	return stepCode[t.op]
}

// kernel returns the loop of a formula.
func (s *steps) kernel() kernel {
	k := kernel{
		fused: true, name: "fused" + upper(s.name), does: "does " + s.does, streams: join(out(strings.Fields(s.out)...),
			in(s.streams...)), scalars: s.scalars,
		body: func(p *program, ins, scalars []val) (results []val) {
			values := append(append([]val{}, ins...), scalars...)
			for _, t := range s.list {
				values = append(values, s.code(t)(p, values[t.a], values[max(t.b, 0)]))
			}
			for _, i := range s.stored {
				results = append(results, values[i])
			}
			if s.sum >= 0 {
				results = append(results, values[s.sum])
			}
			return results
		},
	}
	if s.sum >= 0 {
		k.fold = sum
	}
	for i, stream := range k.streams {
		k.streams[i].prefetch = slices.Contains(strings.Fields(s.prefetch), stream.name)
	}
	return k
}

func fusedKernels() (list []kernel) {
	for _, f := range formulas() {
		list = append(list, f.steps().kernel())
	}
	return list
}

// fusedFile returns the table of the formulas.
func fusedFile() string {
	var out strings.Builder
	out.WriteString(header + "package vec\n\nvar fusedTable = []Fused{\n")
	for i, f := range formulas() {
		s := f.steps()
		fmt.Fprintf(&out, "\t{ // %s\n\t\tName: %q, Streams: %d, Scalars: %d, Out: %s, Sum: %d, Prefetches: %t, "+
			"kernel: %d,\n", f.does, f.name, len(s.streams), len(s.scalars), ints(s.stored), s.sum, s.kernel().prefetches(), i)
		var list []string
		for _, t := range s.list {
			if t.b < 0 {
				list = append(list, fmt.Sprintf("{Unary: %s, A: %d, B: -1}", t.op, t.a))
			} else {
				list = append(list, fmt.Sprintf("{Binary: %s, A: %d, B: %d}", t.op, t.a, t.b))
			}
		}
		out.WriteString("\t\tSteps: []FusedStep{\n" + wrap("\t\t\t", 3, list) + ",\n\t\t},\n\t},\n")
	}
	out.WriteString("}\n")
	return out.String()
}

func ints(list []int) string {
	return "[]int{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(list), " ", ", "), "[]") + "}"
}
