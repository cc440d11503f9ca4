// Package exec runs plans: it chooses a kernel of the instruction set for each instruction and step, and calls them
// with the memory of a run, on all workers. See [Load].
package exec

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// Env is what programs run with.
type Env struct {
	Pool    *pool.Pool
	Level   cpuid.Level // instruction set
	Kernels *gemm.Kernels
	Memory  memory.Pool
}

// Program is a plan with its kernels. Several goroutines may run it at once.
type Program struct {
	env   *Env
	pool  *pool.Pool // that of env, or one for a small plan
	plan  *ir.Plan
	steps []func(r *run)
}

// Input is an input of a run.
type Input struct {
	Base   unsafe.Pointer
	Packed *gemm.Packed // the packed matrix at Base, if it is one
}

// run is one execution.
type run struct {
	*Env
	Pool   *pool.Pool       // of the program, in place of that of Env
	at     []unsafe.Pointer // address of each tensor, by id
	packed []*gemm.Packed   // inputs that are packed, by id of the tensor; nil for others
}

// ptr returns the address of an element of a view's tensor.
func (r *run) ptr(v ir.View, off int) unsafe.Pointer {
	return unsafe.Add(r.at[v.Of.ID], off*v.Of.Size)
}

// Load chooses the kernels of a plan.
func Load(e *Env, p *ir.Plan) *Program {
	prog := &Program{env: e, pool: poolFor(e, p), plan: p, steps: make([]func(r *run), 0, len(p.Steps))}
	for _, s := range p.Steps {
		prog.steps = append(prog.steps, e.step(s))
	}
	return prog
}

// Run runs the steps, with the memory of the inputs and of the outputs.
func (p *Program) Run(inputs []Input, outputs []unsafe.Pointer) {
	space := p.env.Memory.Arena(p.plan.Arena)
	defer p.env.Memory.Keep(space)
	tensors := len(p.plan.Tensors)
	r := &run{Env: p.env, Pool: p.pool, at: make([]unsafe.Pointer, tensors), packed: make([]*gemm.Packed, tensors)}
	for _, t := range p.plan.Tensors {
		switch t.Memory {
		case ir.InInput:
			r.at[t.ID] = inputs[t.Index].Base
			r.packed[t.ID] = inputs[t.Index].Packed
		case ir.InOutput:
			r.at[t.ID] = outputs[t.Index]
		case ir.InConstant:
			r.at[t.ID] = t.Data
		case ir.InArena:
			r.at[t.ID] = unsafe.Add(space.Base, t.Offset)
		}
	}
	for _, s := range p.steps {
		s(r)
	}
}

// step returns what runs a step.
func (e *Env) step(s ir.Step) func(r *run) {
	switch s := s.(type) {
	case *ir.Loop:
		return newLoopRunner(e, s).run
	case *ir.Attention:
		return (&attentionRunner{s, newLoopRunner(e, s.Loop)}).run
	case *ir.Matmul:
		return func(r *run) { r.matmul(s) }
	case *ir.SparseMatmul:
		return func(r *run) { r.sparseMatmul(s) }
	case *ir.Grouped:
		return func(r *run) { r.grouped(s) }
	case *ir.GroupedOuter:
		return func(r *run) { r.groupedOuter(s) }
	case *ir.Copy:
		return func(r *run) { r.copy(s) }
	case *ir.Concat:
		return func(r *run) {
			r.Pool.For(len(s.Parts), func(i int) {
				p := &s.Parts[i]
				runMove(&p.Move, r.ptr(p.To, p.To.Off), r.ptr(p.From, p.From.Off))
			})
		}
	case *ir.Pad:
		return func(r *run) { // what is left of the operand goes over the filling
			fill(r.ptr(s.Out, s.Out.Off), r.ptr(s.With, s.With.Off), s.Out.Of.Count, s.Out.Of.Size)
			runMove(&s.Move, r.ptr(s.Out, s.To.Off), r.ptr(s.From, s.From.Off))
		}
	case *ir.Gather:
		return func(r *run) { r.gather(s) }
	case *ir.Scatter:
		return e.scatter(s)
	case *ir.DynamicSlice:
		return func(r *run) { r.dynamicSlice(s) }
	case *ir.DynamicUpdate:
		return func(r *run) { r.dynamicUpdate(s) }
	case *ir.DeltaRule:
		return func(r *run) { r.deltaRule(s) }
	case *ir.DeltaGradient:
		return func(r *run) { r.deltaGradient(s) }
	}
	return e.reduction(s)
}
