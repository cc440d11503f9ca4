package cpu

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
)

var _ compute.Executable = (*executable)(nil)

// executable is a compiled graph.
type executable struct {
	device  *Device
	names   []string
	inputs  []shapes.Shape
	outputs []output
	steps   []step
	tensors []*tensor
	arena   int // bytes of memory for what lives within a run

	packable []bool // inputs that may be packed
}

// output is a value that is returned.
type output struct {
	shape shapes.Shape
	of    *tensor
	donor int // input whose memory it takes over when that is donated; -1 for none
}

// step is a part of a computation. It may use the workers of the device.
type step interface{ run(r *run) }

// run is one execution. Several may be under way at once.
type run struct {
	device *Device
	at     []unsafe.Pointer     // where each tensor lies
	packed map[int]*gemm.Packed // tensors whose rows are not one after another, by id
}

// ptr returns the address of an element of a view's tensor.
func (r *run) ptr(v view, off int) unsafe.Pointer {
	return unsafe.Add(r.at[v.of.id], off*v.of.size)
}

// Finalize drops the steps.
func (e *executable) Finalize() { e.steps = nil }

// Inputs returns names and shapes of the parameters.
func (e *executable) Inputs() ([]string, []shapes.Shape) { return e.names, e.inputs }

// Outputs returns the shapes of the results.
func (e *executable) Outputs() []shapes.Shape {
	list := make([]shapes.Shape, len(e.outputs))
	for i, o := range e.outputs {
		list[i] = o.shape
	}
	return list
}

// Execute computes the outputs. It returns an error, and computes nothing, when an input does not fit.
func (e *executable) Execute(inputs []compute.Buffer, donate []bool, _ compute.DeviceNum) (out []compute.Buffer, err error) {
	if err := e.check(inputs, donate); err != nil {
		return nil, err
	}
	defer func() {
		if value := recover(); value != nil {
			out, err = nil, fmt.Errorf("cpu: %v", value)
		}
	}()
	space := e.device.memory.arena(e.arena)
	defer e.device.memory.keep(space)
	r := &run{device: e.device, at: make([]unsafe.Pointer, len(e.tensors)), packed: e.packed(inputs)}
	spans := make([]span, len(inputs))
	for i, b := range inputs {
		if spans[i], err = b.(*Buffer).span(); err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
	}
	results := e.place(r, spans, donate, space)
	for _, s := range e.steps {
		s.run(r)
	}
	return e.results(inputs, donate, results), nil
}

// check compares inputs with the parameters.
func (e *executable) check(inputs []compute.Buffer, donate []bool) error {
	if e.steps == nil {
		return errors.New("cpu: the executable is finalized")
	}
	if len(inputs) != len(e.inputs) || donate != nil && len(donate) != len(inputs) {
		return fmt.Errorf("cpu: %d inputs and %d donations for %d parameters", len(inputs), len(donate), len(e.inputs))
	}
	for i, in := range inputs {
		b, ok := in.(*Buffer)
		if !ok || b == nil || b.device != e.device {
			return fmt.Errorf("cpu: input %d (%q) is not a buffer of this device", i, e.names[i])
		}
		if !b.shape.Equal(e.inputs[i]) {
			return fmt.Errorf("cpu: input %d (%q) is %s, want %s", i, e.names[i], b.shape, e.inputs[i])
		}
		if b.packed != nil && (!e.packable[i] || donate != nil && donate[i]) {
			return fmt.Errorf("cpu: input %d (%q) is packed: it can only be multiplied by, from the right, or have its rows gathered, and not be donated", i, e.names[i])
		}
		if first := slices.Index(inputs, in); first < i && donate != nil && (donate[first] || donate[i]) {
			return fmt.Errorf("cpu: inputs %d and %d are one buffer, which is donated", first, i)
		}
	}
	return nil
}

// packed returns the inputs that are packed, by the tensor that they are.
func (e *executable) packed(inputs []compute.Buffer) map[int]*gemm.Packed {
	list := map[int]*gemm.Packed{}
	for _, t := range e.tensors {
		if t.place == inInput {
			if p := inputs[t.index].(*Buffer).packed; p != nil {
				list[t.id] = p
			}
		}
	}
	return list
}

// place says where each tensor lies, and returns the memory of the outputs.
func (e *executable) place(r *run, inputs []span, donate []bool, space span) []span {
	results := make([]span, len(e.outputs))
	for i, o := range e.outputs {
		if o.donor >= 0 && donate != nil && donate[o.donor] {
			results[i] = inputs[o.donor]
			continue
		}
		results[i] = e.device.memory.alloc(bytesOf(o.shape))
	}
	for _, t := range e.tensors {
		switch t.place {
		case inInput:
			r.at[t.id] = inputs[t.index].base
		case inOutput:
			r.at[t.id] = results[t.index].base
		case inConstant:
			r.at[t.id] = t.data
		case inArena:
			r.at[t.id] = unsafe.Add(space.base, t.offset)
		}
	}
	return results
}

// results wraps the outputs in buffers, and empties those that were donated.
func (e *executable) results(inputs []compute.Buffer, donate []bool, spans []span) []compute.Buffer {
	taken := map[int]bool{}
	out := make([]compute.Buffer, len(e.outputs))
	for i, o := range e.outputs {
		out[i] = &Buffer{device: e.device, shape: o.shape, mem: spans[i]}
		if o.donor >= 0 {
			taken[o.donor] = true
		}
	}
	for i := range donate {
		if !donate[i] {
			continue
		}
		b := inputs[i].(*Buffer)
		if mem := b.take(); !taken[i] && mem.base != nil {
			e.device.memory.release(mem)
		}
	}
	return out
}
