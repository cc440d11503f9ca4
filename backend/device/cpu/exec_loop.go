package cpu

import (
	"sync"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// loopRunner is a loop with its kernels.
type loopRunner struct {
	*loop
	level  vec.Level
	instrs []instruction
}

// instruction is an instruction with its kernel.
type instruction struct {
	instr
	kernel kernel
	scalar scalarKernel
	reduce func(dst, x unsafe.Pointer, rows, n int)
	pieces *pieces // of a reduction; nil if it takes a row at once
}

// newLoopRunner chooses the kernels of a loop.
func newLoopRunner(e *env, l *loop) *loopRunner {
	runner := &loopRunner{loop: l, level: e.level}
	for _, in := range l.instrs {
		i := instruction{instr: in}
		switch in.do {
		case doApply:
			i.kernel = elementKernel(e.level, in.op, in.out, in.in)
		case doApplyScalar, doApplyRows:
			i.scalar = withScalar(e.level, in.op, in.left)
		case doReduce:
			k := reduceKernel(e.level, in.op, in.in)
			i.reduce, i.pieces = k.rows, k.pieces
		}
		runner.instrs = append(runner.instrs, i)
	}
	return runner
}

// block is a range of elements, and of rows.
type block struct{ first, n, row, rows int }

// tiles is memory of fused attention that stands for a part of tensors, from their first element on.
type tiles struct {
	first int
	base  [2]unsafe.Pointer
}

// worker is the state of a goroutine that runs a loop. Loops share them.
type worker struct {
	memory    span
	registers []unsafe.Pointer
	tiles     tiles
	sums      []partial
	call      vec.FusedCall
}

var workersPool = sync.Pool{New: func() any { return new(worker) }}

// partsEach is how many parts of a loop each worker gets: workers are not equally fast at all times, and with 4 the one that
// was done first waited for 15 % of a loop.
const partsEach = 12

// threshold is the number of elements times instructions that is worth a second worker.
const threshold = 1 << 15

func (l *loopRunner) run(r *run) {
	blocks := (l.numel + l.block - 1) / l.block
	if blocks == 0 {
		return
	}
	parts := min(blocks, partsEach*r.pool.Workers())
	if l.numel*l.work < threshold {
		parts = 1
	}
	r.pool.For(parts, func(i int) {
		w := l.worker()
		defer workersPool.Put(w)
		l.begin(r, w)
		for b := blocks * i / parts; b < blocks*(i+1)/parts; b++ {
			if next := b + 1; l.prefetches != nil && next < blocks*(i+1)/parts {
				l.runAhead(r, w, l.at(b), l.at(next))
				continue
			}
			l.runBlock(r, w, l.at(b))
		}
	})
}

// runTile runs a loop over n rows of a tile.
func (l *loopRunner) runTile(r *run, workers *pool.Pool, t tiles, row, n int) {
	each := max(1, l.block/l.inner)
	blocks := ceilDiv(n, each)
	parts := 1
	if workers != nil {
		parts = min(blocks, partsEach*workers.Workers())
	}
	one := func(i int) {
		w := l.worker()
		defer workersPool.Put(w)
		w.tiles = t
		l.begin(r, w)
		for b := blocks * i / parts; b < blocks*(i+1)/parts; b++ {
			at, m := row+b*each, min(each, n-b*each)
			l.runBlock(r, w, block{first: at * l.inner, n: m * l.inner, row: at, rows: m})
		}
	}
	if workers == nil {
		one(0)
		return
	}
	workers.For(parts, one)
}

func (l *loopRunner) at(i int) block {
	b := block{first: i * l.block}
	b.n = min(l.block, l.numel-b.first)
	if b.row, b.rows = i*l.rows, l.rows; b.n < l.block && l.inner > 0 {
		b.rows = b.n / l.inner
	}
	return b
}

// each is the number of elements of a row of a block, or of a piece of one.
func (l *loopRunner) each(b block) int {
	return min(l.inner, b.n)
}

// worker returns the state of a goroutine, with the registers that lie in its memory set.
func (l *loopRunner) worker() *worker {
	w := workersPool.Get().(*worker)
	if w.memory.size < l.scratch {
		w.memory = newSpan(rounded(l.scratch))
	}
	if len(w.registers) < l.registers {
		w.registers = make([]unsafe.Pointer, l.registers)
	}
	if len(w.sums) < l.sums {
		w.sums = make([]partial, l.sums)
	}
	for i, off := range l.offsets {
		if off >= 0 {
			w.registers[i] = unsafe.Add(w.memory.base, off)
		}
	}
	return w
}

// begin fills the registers that are the same for all blocks.
func (l *loopRunner) begin(r *run, w *worker) {
	most := l.block
	if l.piece > 0 {
		most = l.piece
	}
	for i := range l.instrs {
		switch in := &l.instrs[i]; in.do {
		case doFill:
			n := most
			if in.row {
				n = l.rows
			}
			fill(w.registers[in.dst], r.ptr(in.v, in.v.off), n, in.size)
		case doPreload:
			loadView(l.level, w.registers[in.dst], r.at[in.v.of.id], in.v, 0, min(most, l.numel))
		}
	}
}

func (l *loopRunner) runBlock(r *run, w *worker, b block) {
	if l.piece > 0 {
		l.runPhases(r, w, b)
		return
	}
	for i := range l.instrs {
		l.step(r, w, &l.instrs[i], b)
	}
}

// runAhead computes a block, and prefetches the memory of the next.
func (l *loopRunner) runAhead(r *run, w *worker, b, next block) {
	for i := range l.instrs {
		l.step(r, w, &l.instrs[i], b)
		l.prefetch(r, i, next)
	}
}

// prefetch prefetches the share of an instruction of the block next.
func (l *loopRunner) prefetch(r *run, i int, next block) {
	for _, a := range l.prefetches[i] {
		v := l.instrs[a.instr].v
		size := next.n * v.of.size
		from := size * a.from / 64
		vec.Prefetch(unsafe.Add(r.ptr(v, v.off+next.first), from), (size*a.to/64-from+63)/64)
	}
}

// runPhases computes a row in pieces.
func (l *loopRunner) runPhases(r *run, w *worker, b block) {
	for i := range l.phases {
		p := &l.phases[i]
		for _, k := range p.rows {
			l.step(r, w, &l.instrs[k], b)
		}
		for at := 0; at < l.inner && len(p.elements) > 0; at += l.piece {
			part := block{first: b.first + at, n: min(l.piece, l.inner-at), row: b.row, rows: 1}
			for j, reg := range l.crossing {
				w.registers[reg] = unsafe.Add(w.memory.base, l.offsets[reg]+at*l.sizes[j])
			}
			for _, k := range p.elements {
				l.step(r, w, &l.instrs[k], part)
			}
		}
	}
}
