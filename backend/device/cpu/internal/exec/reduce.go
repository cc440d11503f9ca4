package exec

import (
	"fmt"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// reduction returns what runs a step that reduces or counts.
func (e *Env) reduction(s ir.Step) func(r *run) {
	switch s := s.(type) {
	case *ir.Iota:
		write := types[s.Out.Of.DType].count
		return func(r *run) { write(r.ptr(s.Out, 0), s.Out.Of.Count, s.Out.Strides[s.Axis], s.Out.Dims[s.Axis]) }
	case *ir.ArgMinMax:
		find, set := types[s.X.Of.DType].extreme, types[s.Out.Of.DType].setInteger
		return func(r *run) {
			r.Pool.For(s.Offsets.Len(), func(i int) {
				set(r.ptr(s.Out, i), find(r.ptr(s.X, s.Offsets.At(i)), s.X.Dims[s.Axis], s.X.Strides[s.Axis], s.IsMin))
			})
		}
	case *ir.CumSum:
		sum := types[s.X.Of.DType].cumulate
		return func(r *run) {
			c := cumulation{n: s.X.Dims[s.Axis], to: s.Out.Strides[s.Axis], from: s.X.Strides[s.Axis], options: s.Options}
			r.Pool.For(s.From.Len(), func(i int) { sum(r.ptr(s.Out, s.To.At(i)), r.ptr(s.X, s.From.At(i)), c) })
		}
	case *ir.Fill:
		k := reduceKernel(e.Level, s.Op, s.Out.Of.DType)
		return func(r *run) { k.start(r.ptr(s.Out, 0), s.Out.Of.Count) }
	case *ir.ReduceColumns:
		k := reduceKernel(e.Level, s.Op, s.X.Of.DType)
		return func(r *run) { r.reduceColumns(s, k) }
	case *ir.ReduceRow:
		k := reduceKernel(e.Level, s.Op, s.X.Of.DType)
		return func(r *run) { // pieces of a row
			r.Pool.For(ir.CeilDiv(s.Count, s.Each), func(i int) {
				k.rows(r.ptr(s.Out, i), r.ptr(s.X, s.X.Off+i*s.Each), 1, min(s.Each, s.Count-i*s.Each))
			})
		}
	}
	panic(fmt.Sprintf("no way to run %T", s))
}

// columnsPart is the number of columns that are reduced together.
const columnsPart = 256

// reduceColumns reduces parts of rows. Work is cut by groups and by columns, so the order of the rows is the same for
// any number of workers.
func (r *run) reduceColumns(s *ir.ReduceColumns, k *reducer) {
	parts := ir.CeilDiv(s.Width, columnsPart)
	r.Pool.For(s.Groups.Len()*parts, func(i int) {
		g, first := i/parts, i%parts*columnsPart
		n := min(columnsPart, s.Width-first)
		var line8, block8 [columnsPart * 8]byte
		reduce := func(acc unsafe.Pointer, from, to int) {
			k.start(acc, n)
			for i := from; i < to; i++ {
				p := r.ptr(s.X, s.Groups.At(g)+s.Rows.At(i)+first*s.Stride)
				if s.Stride != 1 {
					line(unsafe.Pointer(&line8), p, n, s.Stride, s.X.Of.Size)
					p = unsafe.Pointer(&line8)
				}
				k.columns(acc, p, n)
			}
		}
		acc := r.ptr(s.Out, g*s.Width+first)
		rows := s.Rows.Len()
		reduce(acc, 0, min(gemm.Block, rows))
		for from := gemm.Block; from < rows; from += gemm.Block {
			reduce(unsafe.Pointer(&block8), from, min(from+gemm.Block, rows))
			k.columns(acc, unsafe.Pointer(&block8), n)
		}
	})
}
