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
	members := k.loop.Numel / (k.Rows * k.Width)
	if k.Joined > 1 {
		list := k.joined(r, members)
		r.Pool.For(len(list), func(i int) { k.compute(r, nil, list[i]) })
		return
	}
	each := ir.CeilDiv(k.Rows, k.Tile)
	compute := func(workers *pool.Pool, i int) {
		row := i % each * k.Tile
		k.compute(r, workers, tile{members: []int{i / each}, row: row, n: min(k.Tile, k.Rows-row)})
	}
	if !k.Wide {
		r.Pool.For(members*each, func(i int) { compute(nil, i) })
		return
	}
	for i := range members * each {
		compute(r.Pool, i)
	}
}

// tile is n rows of some members of the batch, from row on. All members have the same keys and values before shared.
type tile struct {
	members []int
	row, n  int
	shared  int
}

// rows is the number of rows of all members.
func (p tile) rows() int { return len(p.members) * p.n }

// of is the part of member i.
func (p tile) of(i int) tile {
	p.members = p.members[i : i+1]
	return p
}

// compute computes a tile with some workers; nil is one.
func (k *attentionRunner) compute(r *run, workers *pool.Pool, p tile) {
	var base [2]unsafe.Pointer
	for i := range k.Tiles() {
		if k.Wide {
			base[i] = r.at[k.Shared[i].ID]
			continue
		}
		s := r.Memory.Alloc(k.TileBytes())
		defer r.Memory.Release(s)
		base[i] = s.Base
	}
	scores := memory.Slice[float32](base[0], p.rows()*k.Width)
	k.scores(r, workers, p, scores)
	for i, member := range p.members {
		t := tiles{first: (member*k.Rows + p.row) * k.Width}
		for j := range k.Tiles() {
			t.base[j] = unsafe.Add(base[j], 4*i*p.n*k.Width)
		}
		k.loop.runTile(r, workers, t, member*k.Rows+p.row, p.n)
	}
	if k.Second == nil {
		return
	}
	inner := scores
	switch {
	case !k.Inner.Virtual:
		inner = memory.Slice[float32](r.ptr(ir.View{Of: k.Inner}, k.first(p)*k.Width), p.n*k.Width)
	case k.Inner.Tile == 2:
		inner = memory.Slice[float32](base[1], p.rows()*k.Width)
	}
	k.values(r, workers, p, inner)
}

// first is the first row of a tile of one member.
func (k *attentionRunner) first(p tile) int { return p.members[0]*k.Rows + p.row }

// scores computes the first matmul, for the columns that the mask leaves; the others are 0.
func (k *attentionRunner) scores(r *run, workers *pool.Pool, p tile, scores []float32) {
	shared := 0
	if len(p.members) > 1 {
		shared = p.shared
		left, space := k.joinLeft(r, p)
		r.multiplyColumns(k.First, workers, p, columns{left, gemm.Out{Data: scores, Row: k.Width}, 0, shared})
		r.Memory.Release(space)
	}
	x := k.First.A
	for i, member := range p.members {
		one, mine := p.of(i), scores[i*p.n*k.Width:][:p.n*k.Width]
		used := max(shared, k.used(r, one))
		a, _ := k.First.Offsets(member)
		left := gemm.View{Data: from[float32](r, x.View)[a+p.row*x.Row:], Row: x.Row, Col: x.Inner}
		r.multiplyColumns(k.First, workers, one, columns{left, gemm.Out{Data: mine, Row: k.Width}, shared, used})
		if used < k.Width {
			for j := range p.n {
				clear(mine[j*k.Width+used : (j+1)*k.Width])
			}
		}
	}
}

// columns says which columns [from, to) of c, which has them all, a matmul computes of the rows of a.
type columns struct {
	a        gemm.View
	c        gemm.Out
	from, to int
}

// multiplyColumns computes some columns of the first matmul for the rows of a tile.
func (r *run) multiplyColumns(m *ir.Matmul, workers *pool.Pool, p tile, at columns) {
	if r.readsWhole(m) {
		r.multiplyWhole(m, workers, at.c, at.a, p.rows())
		return
	}
	data, list := r.rightOperand(m, p.members[0], at.from, at.to)
	for _, s := range list {
		r.Kernels.Mul(workers, gemm.Matmul{
			C: at.c.From(s.from), A: at.a, B: gemm.View{Data: data[s.at:], Row: m.B.Inner, Col: m.B.Row},
			M: p.rows(), N: s.to - s.from, K: m.Inner,
		})
	}
}

// rightOperand returns the numbers that hold the right operand of a member of the batch, and the stretches of [from,
// to) of its long axis.
func (r *run) rightOperand(m *ir.Matmul, member, from, to int) ([]float32, []stretch) {
	if from == to {
		return nil, nil
	}
	if g := m.Gathered; g != nil {
		operand := g.By.Operand
		return memory.Slice[float32](r.ptr(operand, 0), operand.Of.Count), r.stretches(nil, m, member, from, to)
	}
	_, b := m.Offsets(member)
	return memory.Slice[float32](r.ptr(m.B.View, 0), m.B.View.Of.Count), []stretch{{m.B.View.Off + b, from, to}}
}

// values computes the second matmul, of the rows of a tile that the loop has made.
func (k *attentionRunner) values(r *run, workers *pool.Pool, p tile, inner []float32) {
	m, width := k.Second, k.Second.B.Rows
	at := func(member int) []float32 {
		return memory.Slice[float32](r.ptr(m.Out, (member*k.Rows+p.row)*width), p.n*width)
	}
	if len(p.members) > 1 {
		space := r.Memory.Alloc(4 * p.rows() * width)
		defer r.Memory.Release(space)
		out := memory.Slice[float32](space.Base, p.rows()*width)
		k.sums(r, workers, p, inner, out)
		for i, member := range p.members {
			copy(at(member), out[i*p.n*width:])
		}
		return
	}
	out := at(p.members[0])
	if r.readsWhole(m) {
		c, a := gemm.Out{Data: out, Row: width}, gemm.View{Data: inner, Row: k.Width, Col: 1}
		r.multiplyWhole(m, workers, c, a, p.n)
		return
	}
	k.sums(r, workers, p, inner, out)
}

// used returns how many columns of a tile of one member the mask leaves, up to the last one.
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
		if row := k.first(p) + i; i == 0 || row%m.Dims[axis] == 0 {
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
