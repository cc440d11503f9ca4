package cpu

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// env is what programs run with.
type env struct {
	pool    *pool.Pool
	level   cpuid.Level // instruction set
	kernels *gemm.Kernels
	memory  memory
}

// program is a plan with its kernels. Several goroutines may run it at once.
type program struct {
	env   *env
	plan  *plan
	steps []func(r *run)
}

// runInput is an input of a run.
type runInput struct {
	base   unsafe.Pointer
	packed *gemm.Packed // the packed matrix at base, if it is one
}

// run is one execution.
type run struct {
	*env
	at     []unsafe.Pointer     // address of each tensor, by id
	packed map[int]*gemm.Packed // inputs that are packed, by id of the tensor
}

// ptr returns the address of an element of a view's tensor.
func (r *run) ptr(v view, off int) unsafe.Pointer {
	return unsafe.Add(r.at[v.of.id], off*v.of.size)
}

// load chooses the kernels of a plan.
func load(e *env, p *plan) *program {
	prog := &program{env: e, plan: p}
	for _, s := range p.steps {
		prog.steps = append(prog.steps, e.step(s))
	}
	return prog
}

// run runs the steps, with the memory of the inputs and of the outputs.
func (p *program) run(inputs []runInput, outputs []unsafe.Pointer) {
	space := p.env.memory.arena(p.plan.arena)
	defer p.env.memory.keep(space)
	r := &run{env: p.env, at: make([]unsafe.Pointer, len(p.plan.tensors)), packed: map[int]*gemm.Packed{}}
	for _, t := range p.plan.tensors {
		switch t.memory {
		case inInput:
			r.at[t.id] = inputs[t.index].base
			if packed := inputs[t.index].packed; packed != nil {
				r.packed[t.id] = packed
			}
		case inOutput:
			r.at[t.id] = outputs[t.index]
		case inConstant:
			r.at[t.id] = t.data
		case inArena:
			r.at[t.id] = unsafe.Add(space.base, t.offset)
		}
	}
	for _, s := range p.steps {
		s(r)
	}
}

// step returns what runs a step.
func (e *env) step(s step) func(r *run) {
	switch s := s.(type) {
	case *loop:
		return newLoopRunner(e, s).run
	case *attention:
		return (&attentionRunner{s, newLoopRunner(e, s.loop)}).run
	case *matmul:
		return func(r *run) { r.matmul(s) }
	case *sparseMatmul:
		return func(r *run) { r.sparseMatmul(s) }
	case *copyStep:
		return func(r *run) { r.copy(s) }
	case *concatStep:
		return func(r *run) { r.concat(s) }
	case *padStep:
		return func(r *run) { r.pad(s) }
	case *gatherStep:
		return func(r *run) { r.gather(s) }
	case *scatterStep:
		return e.scatter(s)
	case *dynamicSliceStep:
		return func(r *run) { r.dynamicSlice(s) }
	case *dynamicUpdateStep:
		return func(r *run) { r.dynamicUpdate(s) }
	}
	return e.reduction(s)
}

// pointer returns the address of data, which is aligned.
func pointer(data []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(data)) }
