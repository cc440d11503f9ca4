package exec

import (
	"sync"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// loopRunner is a loop with its kernels.
type loopRunner struct {
	*ir.Loop
	level  vec.Level
	instrs []instruction
}

// instruction is an instruction with its kernel.
type instruction struct {
	ir.Instr
	kernel kernel
	scalar scalarKernel
	reduce func(dst, x unsafe.Pointer, rows, n int)
	pieces *pieces // of a reduction; nil if it takes a row at once
}

// newLoopRunner chooses the kernels of a loop.
func newLoopRunner(e *Env, l *ir.Loop) *loopRunner {
	runner := &loopRunner{Loop: l, level: e.Level, instrs: make([]instruction, len(l.Instrs))}
	for k := range runner.instrs {
		in := &runner.instrs[k]
		in.Instr = l.Instrs[k]
		switch in.Do {
		case ir.Apply:
			in.kernel = elementKernel(e.Level, in.Op, in.Out, in.In)
		case ir.ApplyScalar, ir.ApplyRows:
			in.scalar = withScalar(e.Level, in.Op, in.Left)
		case ir.Reduce:
			k := reduceKernel(e.Level, in.Op, in.In)
			in.reduce, in.pieces = k.rows, k.pieces
		}
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
	memory    memory.Span
	registers []unsafe.Pointer
	tiles     tiles
	sums      []partial
	call      vec.FusedCall
}

var workersPool = sync.Pool{New: func() any { return new(worker) }}

// partsEach is how many parts of a loop each worker gets: workers are not equally fast at all times, and with 4 the one
// that was done first waited for 15 % of a loop.
const partsEach = 12

// threshold is the number of elements times instructions that is worth a second worker.
const threshold = 1 << 15

func (l *loopRunner) run(r *run) {
	blocks := (l.Numel + l.Block - 1) / l.Block
	if blocks == 0 {
		return
	}
	parts := min(blocks, partsEach*r.Pool.Workers())
	if l.Numel*l.Work < threshold {
		parts = 1
	}
	r.Pool.For(parts, func(i int) {
		w := l.worker()
		defer workersPool.Put(w)
		l.begin(r, w)
		for b := blocks * i / parts; b < blocks*(i+1)/parts; b++ {
			if next := b + 1; l.Prefetches != nil && next < blocks*(i+1)/parts {
				l.runAhead(r, w, l.at(b), l.at(next))
				continue
			}
			l.runBlock(r, w, l.at(b))
		}
	})
}

// runTile runs a loop over n rows of a tile.
func (l *loopRunner) runTile(r *run, workers *pool.Pool, t tiles, row, n int) {
	each := max(1, l.Block/l.Inner)
	blocks := ir.CeilDiv(n, each)
	parts := 1
	if workers != nil {
		parts = min(blocks, partsEach*workers.Workers())
	}
	workers.For(parts, func(i int) {
		w := l.worker()
		defer workersPool.Put(w)
		w.tiles = t
		l.begin(r, w)
		for b := blocks * i / parts; b < blocks*(i+1)/parts; b++ {
			at, m := row+b*each, min(each, n-b*each)
			l.runBlock(r, w, block{first: at * l.Inner, n: m * l.Inner, row: at, rows: m})
		}
	})
}

func (l *loopRunner) at(i int) block {
	b := block{first: i * l.Block}
	b.n = min(l.Block, l.Numel-b.first)
	if b.row, b.rows = i*l.Rows, l.Rows; b.n < l.Block && l.Inner > 0 {
		b.rows = b.n / l.Inner
	}
	return b
}

// each is the number of elements of a row of a block, or of a piece of one.
func (l *loopRunner) each(b block) int {
	return min(l.Inner, b.n)
}

// worker returns the state of a goroutine, with the registers that lie in its memory set.
func (l *loopRunner) worker() *worker {
	w := workersPool.Get().(*worker)
	if w.memory.Size < l.Scratch {
		w.memory = memory.New(memory.Round(l.Scratch))
	}
	if len(w.registers) < l.Registers {
		w.registers = make([]unsafe.Pointer, l.Registers)
	}
	if len(w.sums) < l.Sums {
		w.sums = make([]partial, l.Sums)
	}
	for i, off := range l.Offsets {
		if off >= 0 {
			w.registers[i] = unsafe.Add(w.memory.Base, off)
		}
	}
	return w
}

// begin fills the registers that are the same for all blocks.
func (l *loopRunner) begin(r *run, w *worker) {
	most := l.Block
	if l.Piece > 0 {
		most = l.Piece
	}
	for i := range l.instrs {
		switch in := &l.instrs[i]; in.Do {
		case ir.FillOne:
			n := most
			if in.Row {
				n = l.Rows
			}
			fill(w.registers[in.Dst], r.ptr(in.View, in.View.Off), n, in.Size)
		case ir.Preload:
			loadView(l.level, w.registers[in.Dst], r.at[in.View.Of.ID], in.View, 0, min(most, l.Numel))
		}
	}
}

func (l *loopRunner) runBlock(r *run, w *worker, b block) {
	if l.Piece > 0 {
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
	for _, a := range l.Prefetches[i] {
		v := l.instrs[a.Instr].View
		size := next.n * v.Of.Size
		from := size * a.From / 64
		vec.Prefetch(unsafe.Add(r.ptr(v, v.Off+next.first), from), (size*a.To/64-from+63)/64)
	}
}

// runPhases computes a row in pieces.
func (l *loopRunner) runPhases(r *run, w *worker, b block) {
	for i := range l.Phases {
		p := &l.Phases[i]
		for _, k := range p.Rows {
			l.step(r, w, &l.instrs[k], b)
		}
		for at := 0; at < l.Inner && len(p.Elements) > 0; at += l.Piece {
			part := block{first: b.first + at, n: min(l.Piece, l.Inner-at), row: b.row, rows: 1}
			for j, reg := range l.Crossing {
				w.registers[reg] = unsafe.Add(w.memory.Base, l.Offsets[reg]+at*l.Sizes[j])
			}
			for _, k := range p.Elements {
				l.step(r, w, &l.instrs[k], part)
			}
		}
	}
}
