package compile

import (
	"slices"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// An instruction of a loop reads and writes L1. Where one kernel does several of them and keeps in vector registers
// what nothing else needs, they become one instruction. It does the same operations with the same roundings, so no bit
// changes.

// combine replaces what kernels there are for, the longest sequences first.
func (g *generator) combine() {
	list, by := vec.FusedKernels(), g.writers()
	for k := range list {
		for at := len(g.loop.Instrs) - 1; at >= 0; at-- {
			if at < len(g.loop.Instrs) && ends(&list[k], &g.loop.Instrs[at]) &&
				newSearch(g, &list[k], by).replaceAt(at) {
				by = g.writers()
			}
		}
	}
	clear(g.uses)
	for at := range g.loop.Instrs {
		in := &g.loop.Instrs[at]
		for _, r := range slices.Concat(in.Reads(), in.Writes()) {
			g.uses[r] = at
		}
	}
}

// writers returns the instruction that computes each register, -1 for none.
func (g *generator) writers() []int {
	by := slices.Repeat([]int{-1}, len(g.kinds))
	for i := range g.loop.Instrs {
		if in := &g.loop.Instrs[i]; in.Do >= ir.Apply {
			for _, r := range in.Writes() {
				by[r] = i
			}
		}
	}
	return by
}

// ends reports whether an instruction may be the last one of a sequence.
func ends(f *vec.Fused, in *ir.Instr) bool {
	if f.Sum >= 0 {
		return in.Do == ir.Reduce && in.Op == compute.OpTypeReduceSum && in.IsFloat32()
	}
	return does(f.Steps[len(f.Steps)-1], in)
}

// does reports whether an instruction has the operation of a step, for each element.
func does(t vec.FusedStep, in *ir.Instr) bool {
	if in.Row || in.Do < ir.Apply || in.Do == ir.Reduce || in.Do == ir.Combine || !in.IsFloat32() {
		return false
	}
	if t.B < 0 {
		k, ok := ir.UnaryOps[in.Op]
		return ok && k == t.Unary
	}
	k, ok := ir.BinaryOps[in.Op]
	return ok && k == t.Binary
}

// search looks for a sequence among the instructions of a loop. Its methods get what is left to be found as a function,
// and take back what they noted when that fails: either operand of a sum or a product may be the first.
type search struct {
	g        *generator
	f        *vec.Fused
	by       []int  // instruction that computes a register, -1 for none
	register []int  // of each value, -1 while none is known
	each     []bool // a scalar is one for each row
	instrs   []int  // that are replaced
	sum      int    // register, -1 for none
}

func newSearch(g *generator, f *vec.Fused, by []int) *search {
	n := f.Streams + f.Scalars + len(f.Steps)
	return &search{g: g, f: f, by: by, register: slices.Repeat([]int{-1}, n), each: make([]bool, n), sum: -1}
}

// replaceAt replaces the sequence that ends with an instruction, if it is one.
func (s *search) replaceAt(at int) bool {
	in := &s.g.loop.Instrs[at]
	v, r := len(s.register)-1, in.Dst
	if s.f.Sum >= 0 {
		s.sum, s.instrs = in.Dst, append(s.instrs, at)
		v, r = s.f.Sum, in.Src[0]
	}
	if !s.value(v, r, s.rest) {
		return false
	}
	s.replace()
	return true
}

// rest finds the steps that the last one does not depend on.
func (s *search) rest() bool {
	v := len(s.register) - 1
	for ; v >= 0 && s.register[v] >= 0; v-- {
	}
	if v < 0 {
		return s.alone()
	}
	return slices.ContainsFunc(s.g.loop.Instrs, func(in ir.Instr) bool {
		return in.Do >= ir.Apply && in.Do != ir.Combine && s.value(v, in.Dst, s.rest)
	})
}

// value notes that a register holds a value of the sequence, if it may, and looks for what is left.
func (s *search) value(v, r int, then func() bool) bool {
	if known := s.register[v]; known >= 0 {
		return known == r && then()
	}
	if s.isScalar(v) {
		return false
	}
	s.register[v] = r
	if v < s.f.Streams {
		if k := s.g.kinds[r]; !k.row && k.size == 4 && then() {
			return true
		}
	} else if i := s.by[r]; i >= 0 && !slices.Contains(s.instrs, i) {
		s.instrs = append(s.instrs, i)
		if s.step(s.f.Steps[v-s.f.Streams-s.f.Scalars], &s.g.loop.Instrs[i], then) {
			return true
		}
		s.instrs = s.instrs[:len(s.instrs)-1]
	}
	s.register[v] = -1
	return false
}

// step looks for the operands of a step, if an instruction does it.
func (s *search) step(t vec.FusedStep, in *ir.Instr, then func() bool) bool {
	if !does(t, in) {
		return false
	}
	if t.B < 0 {
		return s.value(t.A, in.Src[0], then)
	}
	either := t.Binary == vec.OpAdd || t.Binary == vec.OpMul
	switch in.Do {
	case ir.Apply:
		return s.pair(t.A, t.B, in.Src, then) || either && s.pair(t.B, t.A, in.Src, then)
	case ir.ApplyScalar, ir.ApplyRows:
		x, number := t.A, t.B
		if s.isScalar(t.A) {
			x, number = number, x
		}
		return (either || (number == t.A) == in.Left) && s.scalar(number, in.Src[1], in.Do == ir.ApplyRows, func() bool {
			return s.value(x, in.Src[0], then)
		})
	}
	return false
}

func (s *search) isScalar(v int) bool { return v >= s.f.Streams && v < s.f.Streams+s.f.Scalars }

// pair is value for two.
func (s *search) pair(a, b int, r [3]int, then func() bool) bool {
	return s.value(a, r[0], func() bool { return s.value(b, r[1], then) })
}

// scalar is value for a number, which there may be one of for each row.
func (s *search) scalar(v, r int, each bool, then func() bool) bool {
	if known := s.register[v]; !s.isScalar(v) || known >= 0 {
		return known == r && s.each[v] == each && then()
	}
	s.register[v], s.each[v] = r, each
	if then() {
		return true
	}
	s.register[v] = -1
	return false
}

// alone reports whether nothing else needs what is not stored, and nothing needs what is stored before the last
// instruction.
func (s *search) alone() bool {
	for v := s.f.Streams + s.f.Scalars; v < len(s.register); v++ {
		if !s.keeps(s.register[v], slices.Contains(s.f.Out, v)) {
			return false
		}
	}
	return s.sum < 0 || s.keeps(s.sum, true)
}

// keeps is alone for one register.
func (s *search) keeps(r int, stored bool) bool {
	if slices.Contains(s.register[:s.f.Streams+s.f.Scalars], r) || !stored && s.g.kinds[r].alias {
		return false
	}
	last := slices.Max(s.instrs)
	for i := range s.g.loop.Instrs {
		in := &s.g.loop.Instrs[i]
		if !slices.Contains(s.instrs, i) && slices.Contains(in.Reads(), r) && (!stored || i < last) {
			return false
		}
	}
	return true
}

// replace puts the kernel in the place of the last instruction, and takes the others out.
func (s *search) replace() {
	f := s.f
	scalars := f.Streams + f.Scalars
	c := &ir.FusedKernel{
		Of: f, In: s.register[:f.Streams], Scalars: s.register[f.Streams:scalars], Each: s.each[f.Streams:scalars],
		Sum: s.sum, Ahead: nearAhead,
	}
	c.Rows = s.sum >= 0 || slices.Contains(c.Each, true)
	for _, v := range f.Out {
		c.Out = append(c.Out, s.register[v])
	}
	last := slices.Max(s.instrs)
	var left []ir.Instr
	for i, in := range s.g.loop.Instrs {
		if i == last {
			left = append(left, ir.Instr{Do: ir.Combine, Dst: -1, Kernel: c})
		} else if !slices.Contains(s.instrs, i) {
			left = append(left, in)
		}
	}
	s.g.loop.Instrs = left
}
