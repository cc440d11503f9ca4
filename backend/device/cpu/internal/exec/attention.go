package exec

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// attentionRunner is fused attention with the kernels of its loop.
type attentionRunner struct {
	*ir.Attention
	loop *loopRunner
}

func (k *attentionRunner) run(r *run) {
	each := ir.CeilDiv(k.Rows, k.Tile)
	count := k.loop.Numel / (k.Rows * k.Width) * each
	compute := func(workers *pool.Pool, i int) {
		row := i % each * k.Tile
		k.compute(r, workers, tile{i / each, row, min(k.Tile, k.Rows-row)})
	}
	if !k.Wide {
		r.Pool.For(count, func(i int) { compute(nil, i) })
		return
	}
	for i := range count {
		compute(r.Pool, i)
	}
}

// tile is n rows of a member of the batch, from row on.
type tile struct{ member, row, n int }

// compute computes a tile with some workers; nil is one.
func (k *attentionRunner) compute(r *run, workers *pool.Pool, p tile) {
	t := tiles{first: (p.member*k.Rows + p.row) * k.Width}
	for i := range k.Tiles() {
		if k.Wide {
			t.base[i] = r.at[k.Shared[i].ID]
			continue
		}
		s := r.Memory.Alloc(k.TileBytes())
		defer r.Memory.Release(s)
		t.base[i] = s.Base
	}
	scores := memory.Slice[float32](t.base[0], p.n*k.Width)
	k.scores(r, workers, p, scores)
	k.loop.runTile(r, workers, t, p.member*k.Rows+p.row, p.n)
	if k.Second == nil {
		return
	}
	inner := scores
	switch {
	case !k.Inner.Virtual:
		inner = memory.Slice[float32](r.ptr(ir.View{Of: k.Inner}, t.first), p.n*k.Width)
	case k.Inner.Tile == 2:
		inner = memory.Slice[float32](t.base[1], p.n*k.Width)
	}
	columns := k.Second.B.Rows
	out := memory.Slice[float32](r.ptr(k.Second.Out, t.first/k.Width*columns), p.n*columns)
	r.multiplyRows(k.Second, workers, p, gemm.Matmul{
		C: gemm.Out{Data: out, Row: columns}, A: gemm.View{Data: inner, Row: k.Width, Col: 1},
		M: p.n, N: columns, K: k.lastColumn(inner, p.n),
	})
}

// scores computes the first matmul, for the columns that the mask leaves; the others are 0.
func (k *attentionRunner) scores(r *run, workers *pool.Pool, p tile, scores []float32) {
	a, _ := k.First.Offsets(p.member)
	x := k.First.A
	used := k.used(r, p)
	r.multiplyRows(k.First, workers, p, gemm.Matmul{
		C: gemm.Out{Data: scores, Row: k.Width},
		A: gemm.View{Data: from[float32](r, x.View)[a+p.row*x.Row:], Row: x.Row, Col: x.Inner},
		M: p.n, N: used, K: k.First.Inner,
	})
	if used < k.Width {
		for i := range p.n {
			clear(scores[i*k.Width+used : (i+1)*k.Width])
		}
	}
}

// multiplyRows multiplies rows of a tile by the right operand, which it sets.
func (r *run) multiplyRows(m *ir.Matmul, workers *pool.Pool, p tile, call gemm.Matmul) {
	if r.readsWhole(m) {
		r.multiplyWhole(m, workers, call.C, call.A, p.n)
		return
	}
	call.B = gemm.View{Data: r.rightOperand(m, p), Row: m.B.Inner, Col: m.B.Row}
	r.Kernels.Mul(workers, call)
}

// rightOperand returns the right operand of a tile, from its first number on.
func (r *run) rightOperand(m *ir.Matmul, p tile) []float32 {
	_, b := m.Offsets(p.member)
	if m.Gathered == nil {
		return from[float32](r, m.B.View)[b:]
	}
	first := p.member / (m.Members() / m.Batch[0].N)
	b += r.member(m.Gathered, first) - first*m.Batch[0].B
	operand := m.Gathered.By.Operand
	return memory.Slice[float32](r.ptr(operand, b), operand.Of.Count-b)
}

// used returns how many columns of a tile the mask leaves, up to the last one.
func (k *attentionRunner) used(r *run, p tile) int {
	if k.Mask == nil || r.readsWhole(k.First) {
		return k.Width
	}
	m := *k.Mask
	stride := m.Strides[len(m.Strides)-1]
	if m.Dims[len(m.Dims)-1] != k.Width {
		return k.Width
	}
	used := 0
	axis := max(0, len(m.Dims)-2) // of the rows
	for i, off := 0, 0; i < p.n; i++ {
		if row := p.member*k.Rows + p.row + i; i == 0 || row%m.Dims[axis] == 0 {
			off = m.At(row * k.Width)
		} else {
			off += m.Strides[axis]
		}
		switch {
		case stride == 1:
			used = max(used, lastByte(memory.Slice[byte](r.ptr(m, off), k.Width), used))
		case stride == 0 && *(*byte)(r.ptr(m, off)) == 0:
		default:
			return k.Width
		}
	}
	return used
}

// lastByte returns the length of x without the zeros at its end, but not less than least.
func lastByte(x []byte, least int) int {
	n := len(x)
	for n-8 >= least && *(*uint64)(unsafe.Pointer(&x[n-8])) == 0 {
		n -= 8
	}
	for n > least && x[n-1] == 0 {
		n--
	}
	return n
}

// lastColumn returns the length of the longest of n rows without the zeros at its end.
func (k *attentionRunner) lastColumn(p []float32, n int) int {
	if k.Mask == nil {
		return k.Width
	}
	end := 0
	for i := range n {
		end = max(end, lastNumber(p[i*k.Width:][:k.Width], end))
	}
	return end
}

// lastNumber returns the length of x without the zeros at its end, of either sign, but not less than least.
func lastNumber(x []float32, least int) int {
	const signs = 1<<63 | 1<<31
	n := len(x)
	for n-16 >= least {
		b := (*[8]uint64)(unsafe.Pointer(&x[n-16]))
		if (b[0]|b[1]|b[2]|b[3]|b[4]|b[5]|b[6]|b[7])&^signs != 0 {
			break
		}
		n -= 16
	}
	for n-2 >= least && *(*uint64)(unsafe.Pointer(&x[n-2]))&^signs == 0 {
		n -= 2
	}
	for n > least && x[n-1] == 0 {
		n--
	}
	return n
}
