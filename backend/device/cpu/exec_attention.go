package cpu

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// attentionRunner is fused attention with the kernels of its loop.
type attentionRunner struct {
	*attention
	loop *loopRunner
}

func (k *attentionRunner) run(r *run) {
	each := ceilDiv(k.rows, k.tile)
	count := k.loop.numel / (k.rows * k.width) * each
	compute := func(workers *pool.Pool, i int) {
		row := i % each * k.tile
		k.compute(r, workers, tile{i / each, row, min(k.tile, k.rows-row)})
	}
	if !k.wide {
		r.pool.For(count, func(i int) { compute(nil, i) })
		return
	}
	for i := range count {
		compute(r.pool, i)
	}
}

// tile is n rows of a member of the batch, from row on.
type tile struct{ member, row, n int }

// compute computes a tile with some workers; nil is one.
func (k *attentionRunner) compute(r *run, workers *pool.Pool, p tile) {
	t := tiles{first: (p.member*k.rows + p.row) * k.width}
	for i := range k.tiles() {
		if k.wide {
			t.base[i] = r.at[k.shared[i].id]
			continue
		}
		s := r.memory.alloc(k.tileBytes())
		defer r.memory.release(s)
		t.base[i] = s.base
	}
	scores := list[float32](t.base[0], p.n*k.width)
	k.scores(r, workers, p, scores)
	k.loop.runTile(r, workers, t, p.member*k.rows+p.row, p.n)
	if k.second == nil {
		return
	}
	inner := scores
	switch {
	case !k.inner.virtual:
		inner = list[float32](r.ptr(view{of: k.inner}, t.first), p.n*k.width)
	case k.inner.tile == 2:
		inner = list[float32](t.base[1], p.n*k.width)
	}
	columns := k.second.b.rows
	out := list[float32](r.ptr(k.second.out, t.first/k.width*columns), p.n*columns)
	r.multiplyRows(k.second, workers, p, gemm.Matmul{
		C: gemm.Out{Data: out, Row: columns}, A: gemm.View{Data: inner, Row: k.width, Col: 1},
		M: p.n, N: columns, K: k.lastColumn(inner, p.n),
	})
}

// scores computes the first matmul, for the columns that the mask leaves; the others are 0.
func (k *attentionRunner) scores(r *run, workers *pool.Pool, p tile, scores []float32) {
	a, _ := k.first.offsets(p.member)
	x := k.first.a
	used := k.used(r, p)
	r.multiplyRows(k.first, workers, p, gemm.Matmul{
		C: gemm.Out{Data: scores, Row: k.width},
		A: gemm.View{Data: from[float32](r, x.v)[a+p.row*x.row:], Row: x.row, Col: x.inner},
		M: p.n, N: used, K: k.first.inner,
	})
	if used < k.width {
		for i := range p.n {
			clear(scores[i*k.width+used : (i+1)*k.width])
		}
	}
}

// multiplyRows multiplies rows of a tile by the right operand, which it sets.
func (r *run) multiplyRows(m *matmul, workers *pool.Pool, p tile, call gemm.Matmul) {
	if r.readsWhole(m) {
		r.multiplyWhole(m, workers, call.C, call.A, p.n)
		return
	}
	call.B = gemm.View{Data: r.rightOperand(m, p), Row: m.b.inner, Col: m.b.row}
	r.kernels.Mul(workers, call)
}

// rightOperand returns the right operand of a tile, from its first number on.
func (r *run) rightOperand(m *matmul, p tile) []float32 {
	_, b := m.offsets(p.member)
	if m.gathered == nil {
		return from[float32](r, m.b.v)[b:]
	}
	first := p.member / (m.members() / m.batch[0].N)
	b += r.member(m.gathered, first) - first*m.batch[0].B
	operand := m.gathered.by.operand
	return list[float32](r.ptr(operand, b), operand.of.count-b)
}

// used returns how many columns of a tile the mask leaves, up to the last one.
func (k *attentionRunner) used(r *run, p tile) int {
	if k.mask == nil || r.readsWhole(k.first) {
		return k.width
	}
	m := *k.mask
	stride := m.strides[len(m.strides)-1]
	if m.dims[len(m.dims)-1] != k.width {
		return k.width
	}
	used := 0
	axis := max(0, len(m.dims)-2) // of the rows
	for i, off := 0, 0; i < p.n; i++ {
		if row := p.member*k.rows + p.row + i; i == 0 || row%m.dims[axis] == 0 {
			off = m.at(row * k.width)
		} else {
			off += m.strides[axis]
		}
		switch {
		case stride == 1:
			used = max(used, lastByte(list[byte](r.ptr(m, off), k.width), used))
		case stride == 0 && *(*byte)(r.ptr(m, off)) == 0:
		default:
			return k.width
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
	if k.mask == nil {
		return k.width
	}
	end := 0
	for i := range n {
		end = max(end, lastNumber(p[i*k.width:][:k.width], end))
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
