package cpu

import (
	"fmt"
	"unsafe"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// position reads the index vector at off into pos, one component for each axis of the operand.
func (r *run) position(x *indexing, off int, pos []int) {
	for k := range x.component {
		pos[x.axes[k]] = integer(r.ptr(x.indices, off+k*x.stride), x.indices.of.kind)
	}
}

// gather copies windows.
func (r *run) gather(g *gatherStep) {
	parts := min(len(g.from), 4*r.pool.Workers())
	if g.out.of.count < threshold {
		parts = min(parts, 1)
	}
	r.pool.For(parts, func(p int) {
		pos := make([]int, len(g.operand.dims))
		for i := len(g.from) * p / parts; i < len(g.from)*(p+1)/parts; i++ {
			r.position(&g.index, g.from[i], pos)
			for a := range pos {
				pos[a] = min(max(pos[a], 0), g.operand.dims[a]-g.size[a])
			}
			r.window(g, g.to[i], pos)
		}
	})
}

// window copies the window at a position.
func (r *run) window(g *gatherStep, to int, pos []int) {
	dst := r.ptr(g.out, to)
	if w := r.packed[g.operand.of.id]; w != nil {
		w.Column(list[float32](dst, w.K), pos[0])
		return
	}
	off := g.operand.off
	for a := range pos {
		off += pos[a] * g.operand.strides[a]
	}
	src := r.ptr(g.operand, off)
	if g.widens() {
		width := g.size[1]
		vec.FromBfloat16(r.level, list[float32](dst, width), list[uint16](src, width))
		return
	}
	runMove(&g.window, dst, src)
}

// member returns where a gathered member of a batch begins in the operand.
func (r *run) member(g *gathered, i int) int {
	operand, indices := g.by.operand, g.by.index.indices
	at := integer(r.ptr(indices, g.by.from[i]), indices.of.kind)
	return operand.off + min(max(at, 0), operand.dims[0]-1)*g.member
}

// scatter returns what combines windows with updates.
func (e *env) scatter(s *scatterStep) func(r *run) {
	combine := scatterKernel(e.level, s.op, s.out.of.kind)
	return func(r *run) {
		r.copyOperand(&s.update)
		pos := make([]int, len(s.out.dims))
		for i, off := range s.from {
			r.position(&s.index, off, pos)
			dst, inside := 0, true
			for a := range pos {
				inside = inside && pos[a] >= 0 && pos[a]+s.size[a] <= s.out.dims[a]
				dst += pos[a] * s.out.strides[a]
			}
			if !inside {
				continue
			}
			for k, at := range s.runs.to {
				combine(r.ptr(s.out, dst+at), r.ptr(s.updates, s.at[i]+s.runs.from[k]), s.runs.n)
			}
		}
	}
}

// setInteger stores x as an integer type.
func setInteger(p unsafe.Pointer, t dtypes.DType, x int) {
	switch t {
	case dtypes.Int8:
		*(*int8)(p) = int8(x)
	case dtypes.Int16:
		*(*int16)(p) = int16(x)
	case dtypes.Int32:
		*(*int32)(p) = int32(x)
	case dtypes.Int64:
		*(*int64)(p) = int64(x)
	case dtypes.Uint8:
		*(*uint8)(p) = uint8(x)
	case dtypes.Uint16:
		*(*uint16)(p) = uint16(x)
	case dtypes.Uint32:
		*(*uint32)(p) = uint32(x)
	case dtypes.Uint64:
		*(*uint64)(p) = uint64(x)
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
