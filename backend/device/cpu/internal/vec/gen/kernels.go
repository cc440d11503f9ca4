package main

import (
	"math"
	"slices"
)

// elem is the type of the elements of a stream.
type elem string

const (
	f32   elem = "float32"
	i32   elem = "int32"
	u16   elem = "uint16"
	truth elem = "bool"
)

// stream is a slice that a kernel reads, writes or both, one element after the other.
type stream struct {
	name     string
	elem     elem
	reads    bool
	write    bool
	prefetch bool // what comes later of it is prefetched, at a distance that is a parameter
}

// kernel is a loop over streams of the same length.
type kernel struct {
	name    string
	does    string // its doc comment, after the name
	streams []stream
	scalars []string
	fold    *fold // what its value is gathered with, nil for a loop that only writes
	body    func(p *program, in []val, s []val) []val
	fused   bool // its operands are those of a FusedCall
}

// fold gathers values in 64 lanes.
type fold struct {
	identity float32
	step     func(p *program, acc, x val) val
	tree     string // the Go function that brings the lanes together
	start    string // the identity in Go
}

var (
	sum     = &fold{0, (*program).plus, "sumTree", "0"}
	largest = &fold{float32(math.Inf(-1)), (*program).maxNaN, "maxTree", "negativeInfinity"}
	least   = &fold{float32(math.Inf(1)), (*program).minNaN, "minTree", "positiveInfinity"}
	anyBits = &fold{0, (*program).orBits, "orTree", "0"}
)

func in(names ...string) (list []stream) {
	for _, n := range names {
		list = append(list, stream{name: n, elem: f32, reads: true})
	}
	return list
}

func out(names ...string) (list []stream) {
	for _, n := range names {
		list = append(list, stream{name: n, elem: f32, write: true})
	}
	return list
}

func join(lists ...[]stream) (all []stream) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func one(v val) []val { return []val{v} }

// program writes the body of the kernel down.
func (k kernel) program(has abilities) *program {
	p := newProgram(has)
	var ins, scalars []val
	for i, s := range k.streams {
		if s.reads {
			ins = append(ins, p.load(i, kindOf(s.elem)))
		}
	}
	for i := range k.scalars {
		scalars = append(scalars, p.scalar(i))
	}
	results := k.body(p, ins, scalars)
	for i, s := range k.streams {
		if s.write {
			p.add(opStore, kindOf(s.elem), uint32(i), results[0])
			results = results[1:]
		}
	}
	if k.fold != nil {
		x := p.add(opTail, float, math.Float32bits(k.fold.identity), results[0])
		p.add(opSetAcc, float, 0, k.fold.step(p, p.add(opAcc, float, 0), x))
	}
	return p
}

func kindOf(e elem) kind {
	switch e {
	case f32:
		return float
	case truth:
		return mask
	}
	return word
}

// prefetches tells whether a kernel prefetches any of its streams.
func (k kernel) prefetches() bool {
	return slices.ContainsFunc(k.streams, func(s stream) bool { return s.prefetch })
}

// narrow tells whether a stream has elements of less than 32 bits.
func (k kernel) narrow() bool {
	for _, s := range k.streams {
		if s.elem == truth || s.elem == u16 {
			return true
		}
	}
	return false
}

func kernels() []kernel {
	var all []kernel
	all = append(all, unaryKernels()...)
	all = append(all, binaryKernels()...)
	all = append(all, compareKernels()...)
	all = append(all, mixKernels()...)
	all = append(all, foldKernels()...)
	all = append(all, fusedKernels()...)
	return append(all, convertKernels()...)
}

func unaryKernels() (list []kernel) {
	def := func(name, does string, f func(p *program, x val) val) {
		list = append(list, kernel{name, does, join(out("dst"), in("x")), nil, nil,
			func(p *program, in, _ []val) []val { return one(f(p, in[0])) }, false})
	}
	def("neg", "writes -x", (*program).neg)
	def("abs", "writes |x|", (*program).abs)
	def("sqrt", "writes the square root of x", (*program).sqrt)
	def("rsqrt", "writes 1/sqrt(x)", func(p *program, x val) val { return p.over(p.num(1), p.sqrt(x)) })
	def("exp", "writes exp(x)", (*program).exp)
	def("expm1", "writes exp(x) - 1", func(p *program, x val) val { return p.keepZero(x, p.expm1(x)) })
	def("log", "writes the natural logarithm of x", (*program).log)
	def("log1p", "writes log(1+x)", (*program).log1p)
	def("sigmoid", "writes 1/(1+exp(-x))", (*program).sigmoid)
	def("tanh", "writes the hyperbolic tangent of x", (*program).tanh)
	def("sinSmall", "writes the sine of x, |x| <= 1e5", (*program).sin)
	def("cosSmall", "writes the cosine of x, |x| <= 1e5", (*program).cos)
	def("sign", "writes 1 for x > 0, -1 for x < 0, else x", (*program).sign)
	def("floor", "writes the largest integer up to x", func(p *program, x val) val { return p.round(down, x) })
	def("ceil", "writes the least integer from x", func(p *program, x val) val { return p.round(up, x) })
	def("round", "writes the nearest integer, even on ties", func(p *program, x val) val { return p.round(nearest, x) })
	return list
}

func binaryKernels() (list []kernel) {
	def := func(name, sign string, f func(p *program, a, b val) val) {
		list = append(list,
			kernel{name, "writes " + sign, join(out("dst"), in("a", "b")), nil, nil,
				func(p *program, in, _ []val) []val { return one(f(p, in[0], in[1])) }, false},
			kernel{name + "Scalar", "writes " + sign, join(out("dst"), in("a")), []string{"b"}, nil,
				func(p *program, in, s []val) []val { return one(f(p, in[0], s[0])) }, false},
			kernel{"scalar" + upper(name), "writes " + sign, join(out("dst"), in("b")), []string{"a"}, nil,
				func(p *program, in, s []val) []val { return one(f(p, s[0], in[0])) }, false})
	}
	def("add", "a + b", (*program).plus)
	def("sub", "a - b", (*program).minus)
	def("mul", "a * b", (*program).times)
	def("div", "a / b", (*program).over)
	def("max", "the larger one of a and b", (*program).maxNaN)
	def("min", "the smaller one of a and b", (*program).minNaN)
	return list
}

func compareKernels() (list []kernel) {
	dst := []stream{{name: "dst", elem: truth, write: true}}
	for i, name := range []string{"equal", "less", "lessEqual", "", "notEqual", "greater", "greaterEqual"} {
		if name == "" {
			continue
		}
		how := uint32(i)
		list = append(list,
			kernel{name, "compares a with b", join(dst, in("a", "b")), nil, nil,
				func(p *program, in, _ []val) []val { return one(p.cmp(how, in[0], in[1])) }, false},
			kernel{name + "Scalar", "compares a with b", join(dst, in("a")), []string{"b"}, nil,
				func(p *program, in, s []val) []val { return one(p.cmp(how, in[0], s[0])) }, false})
	}
	return list
}
