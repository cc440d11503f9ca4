package cpu

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// stepFunc is a step that is a function.
type stepFunc func(r *run)

func (f stepFunc) run(r *run) { f(r) }

// newStep returns the step of an operation that is neither a view nor fused.
func newStep(l vec.Level, n *node, out view, in []view) step {
	switch n.op {
	case compute.OpTypeConcatenate:
		return concatenate(n.attr.(axis).axis, out, in)
	case compute.OpTypePad:
		return pad(n.attr.(padding).axes, out, in[0], in[1])
	case compute.OpTypeIota:
		return countAlong(n.attr.(axis).axis, out)
	case compute.OpTypeArgMinMax:
		return argMinMax(n.attr.(argument), out, in[0])
	case compute.OpTypeCumSum:
		return cumSum(n.attr.(cumulative), out, in[0])
	case compute.OpTypeGather:
		return newGather(n.attr.(gather), out, in[0], in[1])
	case compute.OpTypeScatterSum, compute.OpTypeScatterMax, compute.OpTypeScatterMin:
		return newScatter(l, n.op, n.attr.(scatter), out, in)
	case compute.OpTypeDynamicSlice:
		return dynamicSlice(out, in)
	case compute.OpTypeDynamicUpdateSlice:
		return dynamicUpdate(out, in)
	}
	panic(fmt.Sprintf("no step for %s", n.op))
}

func concatenate(ax int, out view, in []view) step {
	// Each operand is cut along its first axis, so that the workers have equal shares.
	type part struct {
		move
		from, to view
	}
	var parts []part
	at := 0
	for _, x := range in {
		to := view{of: out.of, off: out.off + at*out.strides[ax], dims: x.dims, strides: out.strides}
		at += x.dims[ax]
		for _, p := range cuts(x.dims) {
			a, b := to.slice(p.starts, p.strides, p.dims), x.slice(p.starts, p.strides, p.dims)
			parts = append(parts, part{newMove(a, b), b, a})
		}
	}
	return stepFunc(func(r *run) {
		r.device.pool.For(len(parts), func(i int) {
			p := &parts[i]
			p.run(r.ptr(p.to, p.to.off), r.ptr(p.from, p.from.off))
		})
	})
}

// piece is a part of a tensor.
type piece struct{ starts, strides, dims []int }

// cuts divides the first axis longer than one into parts of some size.
func cuts(dims []int) (list []piece) {
	ones := slices.Repeat([]int{1}, len(dims))
	ax := max(0, slices.IndexFunc(dims, func(d int) bool { return d > 1 }))
	step := dims[ax]
	if n := volume(dims); n > threshold {
		step = max(1, dims[ax]*threshold/n)
	}
	for at := 0; at < dims[ax]; at += step {
		list = append(list, piece{with1(make([]int, len(dims)), ax, at), ones, with1(dims, ax, min(step, dims[ax]-at))})
	}
	return list
}

// pad fills the output and copies what is left of the input over it.
func pad(axes []compute.PadAxis, out, x, with view) step {
	to := view{of: out.of, off: out.off, dims: append([]int{}, x.dims...), strides: append([]int{}, out.strides...)}
	for i, a := range axes {
		step := a.Interior + 1
		first := 0 // of the elements that stay
		if a.Start < 0 {
			first = (-a.Start + step - 1) / step
		}
		last := x.dims[i]
		for last > first && a.Start+(last-1)*step >= out.dims[i] {
			last--
		}
		x = x.slice(only(len(x.dims), i, first), only1(len(x.dims), i, 1), with1(x.dims, i, max(0, last-first)))
		to.off += (a.Start + first*step) * out.strides[i]
		to.strides[i] *= step
		to.dims[i] = x.dims[i]
	}
	m := newMove(to, x)
	return stepFunc(func(r *run) {
		fill(r.ptr(out, out.off), r.ptr(with, with.off), out.of.count, out.of.size)
		m.run(r.ptr(out, to.off), r.ptr(x, x.off))
	})
}

// only returns n zeros but for one place, only1 ones, with1 a copy of list.
func only(n, i, value int) []int { return with1(make([]int, n), i, value) }

func only1(n, i, value int) []int {
	list := make([]int, n)
	for k := range list {
		list[k] = 1
	}
	return with1(list, i, value)
}

func with1(list []int, i, value int) []int {
	list = append([]int{}, list...)
	list[i] = value
	return list
}

func countAlong(ax int, out view) step {
	write := counter(out.of.kind)
	return stepFunc(func(r *run) { write(r.ptr(out, 0), out.of.count, out.strides[ax], out.dims[ax]) })
}

// without returns v at the first position of an axis, which is left out.
func (v view) without(ax int) view {
	rest := view{of: v.of, off: v.off}
	for i := range v.dims {
		if i != ax {
			rest.dims = append(rest.dims, v.dims[i])
			rest.strides = append(rest.strides, v.strides[i])
		}
	}
	return rest
}

func argMinMax(at argument, out, x view) step {
	find := argumentOf(x.of.kind)
	places := offsetsOf(x.without(at.axis))
	return stepFunc(func(r *run) {
		r.device.pool.For(len(places), func(i int) {
			index := find(r.ptr(x, places[i]), x.dims[at.axis], x.strides[at.axis], at.isMin)
			setInteger(r.ptr(out, i), out.of.kind, index)
		})
	})
}

func cumSum(at cumulative, out, x view) step {
	sum := runningSum(x.of.kind)
	from, to := offsetsOf(x.without(at.axis)), offsetsOf(out.without(at.axis))
	return stepFunc(func(r *run) {
		r.device.pool.For(len(from), func(i int) {
			sum(r.ptr(out, to[i]), r.ptr(x, from[i]), x.dims[at.axis], out.strides[at.axis], x.strides[at.axis], at.options)
		})
	})
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
