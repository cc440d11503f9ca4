package exec

import (
	"fmt"
	"unsafe"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// position reads the index vector at off into pos, one component for each axis of the operand.
func (r *run) position(x *ir.Indexing, off int, pos []int) {
	for k := range x.Component {
		pos[x.Axes[k]] = integer(r.ptr(x.Indices, off+k*x.Stride), x.Indices.Of.DType)
	}
}

// gather copies windows.
func (r *run) gather(g *ir.Gather) {
	parts := min(g.From.Len(), 4*r.Pool.Workers())
	if g.Out.Of.Count < threshold {
		parts = min(parts, 1)
	}
	r.Pool.For(parts, func(p int) {
		pos := make([]int, len(g.Operand.Dims))
		for i := g.From.Len() * p / parts; i < g.From.Len()*(p+1)/parts; i++ {
			r.position(&g.Index, g.From.At(i), pos)
			for a := range pos {
				pos[a] = min(max(pos[a], 0), g.Operand.Dims[a]-g.Size[a])
			}
			r.window(g, g.To.At(i), pos)
		}
	})
}

// window copies the window at a position.
func (r *run) window(g *ir.Gather, to int, pos []int) {
	dst := r.ptr(g.Out, to)
	if w := r.packed[g.Operand.Of.ID]; w != nil {
		w.Column(memory.Slice[float32](dst, w.K), pos[0])
		return
	}
	off := g.Operand.Off
	for a := range pos {
		off += pos[a] * g.Operand.Strides[a]
	}
	src := r.ptr(g.Operand, off)
	if g.Widens() {
		width := g.Size[1]
		vec.FromBfloat16(r.Level, memory.Slice[float32](dst, width), memory.Slice[uint16](src, width))
		return
	}
	runMove(&g.Window, dst, src)
}

// scatter returns what combines windows with updates.
func (e *Env) scatter(s *ir.Scatter) func(r *run) {
	combine := scatterKernel(e.Level, s.Op, s.Out.Of.DType)
	if size := s.Out.Of.Size; s.Replaces {
		combine = func(to, from unsafe.Pointer, n int) {
			copy(memory.Slice[byte](to, n*size), memory.Slice[byte](from, n*size))
		}
	}
	return func(r *run) {
		r.copyOperand(&s.Update)
		pos := make([]int, len(s.Out.Dims))
		for i := range s.From.Len() {
			r.position(&s.Index, s.From.At(i), pos)
			dst, inside := 0, true
			for a := range pos {
				inside = inside && pos[a] >= 0 && pos[a]+s.Size[a] <= s.Out.Dims[a]
				dst += pos[a] * s.Out.Strides[a]
			}
			if !inside {
				continue
			}
			for k, at := range s.Runs.To {
				combine(r.ptr(s.Out, dst+at), r.ptr(s.Updates, s.At.At(i)+s.Runs.From[k]), s.Runs.N)
			}
		}
	}
}

// integer reads an integer type.
func integer(p unsafe.Pointer, t dtypes.DType) int {
	switch t {
	case dtypes.Int8:
		return int(*(*int8)(p))
	case dtypes.Int16:
		return int(*(*int16)(p))
	case dtypes.Int32:
		return int(*(*int32)(p))
	case dtypes.Int64:
		return int(*(*int64)(p))
	case dtypes.Uint8:
		return int(*(*uint8)(p))
	case dtypes.Uint16:
		return int(*(*uint16)(p))
	case dtypes.Uint32:
		return int(*(*uint32)(p))
	case dtypes.Uint64:
		return int(*(*uint64)(p))
	}
	panic(fmt.Sprintf("%s is no integer", t))
}
