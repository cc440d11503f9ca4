package cpu

import (
	"fmt"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
)

// reduction returns what runs a step that reduces or counts.
func (e *env) reduction(s step) func(r *run) {
	switch s := s.(type) {
	case *iotaStep:
		write := counter(s.out.of.kind)
		return func(r *run) { write(r.ptr(s.out, 0), s.out.of.count, s.out.strides[s.axis], s.out.dims[s.axis]) }
	case *argMinMaxStep:
		find := argumentOf(s.x.of.kind)
		return func(r *run) { r.argMinMax(s, find) }
	case *cumSumStep:
		sum := runningSum(s.x.of.kind)
		return func(r *run) { r.cumSum(s, sum) }
	case *fillStep:
		k := reduceKernel(e.level, s.op, s.out.of.kind)
		return func(r *run) { k.start(r.ptr(s.out, 0), s.out.of.count) }
	case *reduceColumnsStep:
		k := reduceKernel(e.level, s.op, s.x.of.kind)
		return func(r *run) { r.reduceColumns(s, k) }
	case *reduceRowStep:
		k := reduceKernel(e.level, s.op, s.x.of.kind)
		return func(r *run) { r.reduceRow(s, k) }
	}
	panic(fmt.Sprintf("no way to run %T", s))
}

func (r *run) argMinMax(s *argMinMaxStep, find func(x unsafe.Pointer, n, stride int, isMin bool) int) {
	r.pool.For(len(s.offsets), func(i int) {
		index := find(r.ptr(s.x, s.offsets[i]), s.x.dims[s.axis], s.x.strides[s.axis], s.isMin)
		setInteger(r.ptr(s.out, i), s.out.of.kind, index)
	})
}

func (r *run) cumSum(s *cumSumStep, sum func(dst, x unsafe.Pointer, c cumulation)) {
	c := cumulation{n: s.x.dims[s.axis], to: s.out.strides[s.axis], from: s.x.strides[s.axis], options: s.options}
	r.pool.For(len(s.from), func(i int) { sum(r.ptr(s.out, s.to[i]), r.ptr(s.x, s.from[i]), c) })
}

// columnsPart is the number of columns that are reduced together.
const columnsPart = 256

// reduceColumns reduces parts of rows. Work is cut by groups and by columns, so the order of the rows is the same for any
// number of workers.
func (r *run) reduceColumns(s *reduceColumnsStep, k *reducer) {
	parts := ceilDiv(s.width, columnsPart)
	r.pool.For(len(s.groups)*parts, func(i int) {
		g, first := i/parts, i%parts*columnsPart
		n := min(columnsPart, s.width-first)
		var line8, block8 [columnsPart * 8]byte
		reduce := func(acc unsafe.Pointer, rows []int) {
			k.start(acc, n)
			for _, off := range rows {
				p := r.ptr(s.x, s.groups[g]+off+first*s.stride)
				if s.stride != 1 {
					line(unsafe.Pointer(&line8), p, n, s.stride, s.x.of.size)
					p = unsafe.Pointer(&line8)
				}
				k.columns(acc, p, n)
			}
		}
		acc := r.ptr(s.out, g*s.width+first)
		reduce(acc, s.rows[:min(gemm.Block, len(s.rows))])
		for from := gemm.Block; from < len(s.rows); from += gemm.Block {
			reduce(unsafe.Pointer(&block8), s.rows[from:min(from+gemm.Block, len(s.rows))])
			k.columns(acc, unsafe.Pointer(&block8), n)
		}
	})
}

// reduceRow reduces pieces of a row.
func (r *run) reduceRow(s *reduceRowStep, k *reducer) {
	r.pool.For(ceilDiv(s.count, s.each), func(i int) {
		k.rows(r.ptr(s.out, i), r.ptr(s.x, s.x.off+i*s.each), 1, min(s.each, s.count-i*s.each))
	})
}
