package ir

import (
	"fmt"
	"slices"
	"strings"
)

// String prints a plan: inputs, steps in their order, outputs, and the memory of the results between. A value is the
// number of its tensor with the dimensions of the view; "@" is an offset in elements, and "/" are strides where a view
// is not contiguous.
func (p *Plan) String() string {
	var b strings.Builder
	for i, in := range p.Inputs {
		packable := ""
		if in.Packable {
			packable = ", may be packed"
		}
		fmt.Fprintf(&b, "input %d %q %s%s\n", i, in.Name, in.Shape, packable)
	}
	for i, s := range p.Steps {
		fmt.Fprintf(&b, "step %d %s\n", i, describe(s))
	}
	for i, o := range p.Outputs {
		donor := ""
		if o.Donor >= 0 {
			donor = fmt.Sprintf(", in place of input %d if that is donated", o.Donor)
		}
		fmt.Fprintf(&b, "output %d t%d %s%s\n", i, o.Of.ID, o.Shape, donor)
	}
	fmt.Fprintf(&b, "arena of %d bytes\n", p.Arena)
	return b.String()
}

// describe prints a step: its operation, what it reads, and where it writes.
func describe(s Step) string {
	switch s := s.(type) {
	case *Loop:
		return s.describe("")
	case *Attention:
		var b strings.Builder
		fmt.Fprintf(&b, "attention, tiles of %d rows of %d", s.Tile, s.Width)
		if s.Mask != nil {
			fmt.Fprintf(&b, ", masked by %s", s.Mask)
		}
		fmt.Fprintf(&b, "\n    %s\n    %s", s.First.describe("matmul"), s.Loop.describe("    "))
		if s.Second != nil {
			fmt.Fprintf(&b, "\n    %s", s.Second.describe("matmul"))
		}
		return b.String()
	case *Matmul:
		return s.describe("matmul")
	case *SparseMatmul:
		side := "left"
		if s.Right {
			side = "right"
		}
		return s.Matmul.describe("sparse matmul, zeros on the " + side)
	}
	name := strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", s), "*ir."))
	return fmt.Sprintf("%s %s -> %s", name, viewList(s.Reads()), tensorList(s.Writes()))
}

// describe prints operands, sizes and result.
func (m *Matmul) describe(name string) string {
	bf16 := ""
	if m.BF16 {
		bf16 = ", widened from bfloat16"
	}
	return fmt.Sprintf("%s [%dx %d,%d]x[%d,%d] %s -> %s%s", name, m.Members(), m.A.Rows, m.Inner, m.Inner, m.B.Rows,
		viewList(m.Reads()), tensorList(m.Writes()), bf16)
}

// describe prints what a loop computes, and in which blocks, with a line for each operation.
func (l *Loop) describe(indent string) string {
	size := fmt.Sprintf("blocks of %d", l.Block)
	if l.Piece > 0 {
		size = fmt.Sprintf("rows in pieces of %d, %d passes", l.Piece, len(l.Phases))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "loop over %d elements, rows of %d, %s, %d bytes of registers -> %s",
		l.Numel, l.Inner, size, l.Scratch, tensorList(l.Results))
	for _, op := range l.Fused {
		each := ""
		if op.Row {
			each = " a row"
		}
		fmt.Fprintf(&b, "\n%s    t%d = %s%s %s", indent, op.Out.ID, op.Op, each, viewList(op.In))
	}
	if kernels := l.kernels(); len(kernels) > 0 {
		fmt.Fprintf(&b, "\n%s    fused kernels: %s", indent, strings.Join(kernels, ", "))
	}
	return b.String()
}

// kernels are the names of the kernels of several operations.
func (l *Loop) kernels() (names []string) {
	for _, in := range l.Instrs {
		if in.Do == Combine {
			names = append(names, in.Kernel.Of.Name)
		}
	}
	return names
}

// String prints a view.
func (v View) String() string {
	s := fmt.Sprintf("t%d%v", v.Of.ID, v.Dims)
	if v.Off != 0 {
		s += fmt.Sprintf("@%d", v.Off)
	}
	if !slices.Equal(v.Strides, RowMajor(v.Dims)) {
		s += fmt.Sprintf("/%v", v.Strides)
	}
	return s
}

func viewList(views []View) string {
	list := make([]string, len(views))
	for i, v := range views {
		list[i] = v.String()
	}
	return strings.Join(list, " ")
}

// tensorList prints tensors with the memory that they are in.
func tensorList(tensors []*Tensor) string {
	list := make([]string, len(tensors))
	for i, t := range tensors {
		list[i] = fmt.Sprintf("t%d%v %s", t.ID, t.Dims, t.where())
	}
	return strings.Join(list, ", ")
}

// where says what memory a tensor is in.
func (t *Tensor) where() string {
	switch {
	case t.Virtual:
		return fmt.Sprintf("in tile %d", t.Tile)
	case t.Memory == InArena:
		return fmt.Sprintf("in the arena at %d", t.Offset)
	case t.Memory == InOutput:
		return fmt.Sprintf("in output %d", t.Index)
	case t.Memory == InInput:
		return fmt.Sprintf("in input %d", t.Index)
	case t.Memory == InConstant:
		return "constant"
	}
	return "in registers"
}
