package exec

import (
	"slices"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// copy writes the elements of a view in row-major order.
func (r *run) copy(s *ir.Copy) {
	if s.Kernel == nil {
		r.copyView(s.Out, s.From)
		return
	}
	n := ir.Volume(s.From.Dims)
	dst := memory.Slice[uint32](r.ptr(s.Out, s.Out.Off), n)
	src := memory.Slice[uint32](r.ptr(s.From, s.From.Off), s.From.Of.Count-s.From.Off)
	units, parts := s.Kernel.Units(), 1
	if n >= threshold {
		parts = min(units, 4*r.Pool.Workers())
	}
	r.Pool.For(parts, func(i int) { vec.Run(r.Level, *s.Kernel, dst, src, units*i/parts, units*(i+1)/parts) })
}

// copyView writes the elements of from, collapsed, one after another to to.
func (r *run) copyView(to, from ir.View) {
	n := ir.Volume(from.Dims)
	parts := 1
	if n > threshold {
		parts = 4 * r.Pool.Workers()
	}
	r.Pool.For(parts, func(i int) {
		first, end := n*i/parts, n*(i+1)/parts
		loadView(r.Level, r.ptr(to, to.Off+first), r.at[from.Of.ID], from, first, end-first)
	})
}

// start reads scalars, and moves them so that a window of the given size lies inside.
func (r *run) start(scalars []ir.View, dims, size []int) []int {
	pos := make([]int, len(dims))
	for i, s := range scalars {
		pos[i] = min(max(integer(r.ptr(s, s.Off), s.Of.DType), 0), dims[i]-size[i])
	}
	return pos
}

// dynamicSlice copies a region whose start is computed.
func (r *run) dynamicSlice(s *ir.DynamicSlice) {
	pos := r.start(s.Starts, s.X.Dims, s.Out.Dims)
	r.copyView(s.Out, s.X.Slice(pos, slices.Repeat([]int{1}, len(pos)), s.Out.Dims).Collapse())
}

// dynamicUpdate replaces a region whose start is computed.
func (r *run) dynamicUpdate(s *ir.DynamicUpdate) {
	r.copyOperand(&s.Update)
	ones := slices.Repeat([]int{1}, len(s.Out.Dims))
	to := s.Out.Slice(r.start(s.Starts, s.Out.Dims, s.With.Dims), ones, s.With.Dims)
	runMove(&s.Move, r.ptr(s.Out, to.Off), r.ptr(s.With, s.With.Off))
}

// copyOperand copies the operand of an update to the result, unless they share their memory.
func (r *run) copyOperand(u *ir.Update) {
	if r.at[u.Operand.Of.ID] != r.at[u.Out.Of.ID] {
		r.copyView(u.Out, u.Operand)
	}
}

// runMove copies: dst and src are the first elements.
func runMove(m *ir.Move, dst, src unsafe.Pointer) {
	k := len(m.Dims) - 1
	var index [ir.MaxAxes]int
	if slices.Contains(m.Dims, 0) {
		return
	}
	to, from := 0, 0
	for {
		moveLine(m, unsafe.Add(dst, to*m.Size), unsafe.Add(src, from*m.Size), m.Dims[k])
		i := k - 1
		for ; i >= 0; i-- {
			index[i]++
			to, from = to+m.To[i], from+m.From[i]
			if index[i] < m.Dims[i] {
				break
			}
			to, from = to-index[i]*m.To[i], from-index[i]*m.From[i]
			index[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// moveLine copies along the last axis.
func moveLine(m *ir.Move, dst, src unsafe.Pointer, n int) {
	k := len(m.Dims) - 1
	if m.To[k] == 1 {
		line(dst, src, n, m.From[k], m.Size)
		return
	}
	for i := range n {
		line(unsafe.Add(dst, i*m.To[k]*m.Size), unsafe.Add(src, i*m.From[k]*m.Size), 1, 1, m.Size)
	}
}
