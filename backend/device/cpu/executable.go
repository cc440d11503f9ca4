package cpu

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
)

var _ compute.Executable = (*executable)(nil)

// executable is a compiled graph.
type executable struct {
	device  *Device
	plan    *plan
	program *program // nil when finalized
}

// compile compiles a graph.
func (d *Device) compile(s source) (*executable, error) {
	p, err := compile(s, compileOptions{workers: d.env.pool.Workers(), unfused: d.unfused, evaluate: d.evaluate})
	if err != nil {
		return nil, err
	}
	return &executable{device: d, plan: p, program: load(&d.env, p)}, nil
}

// evaluate runs a plan without inputs, and returns the memory of its outputs.
func (d *Device) evaluate(p *plan) ([]unsafe.Pointer, error) {
	var outputs []unsafe.Pointer
	for _, o := range p.outputs {
		outputs = append(outputs, d.env.memory.alloc(bytesOf(o.shape)).base)
	}
	load(&d.env, p).run(nil, outputs)
	return outputs, nil
}

// Finalize drops the steps.
func (e *executable) Finalize() { e.program = nil }

// Inputs returns names and shapes of the parameters.
func (e *executable) Inputs() (names []string, list []shapes.Shape) {
	for _, in := range e.plan.inputs {
		names, list = append(names, in.name), append(list, in.shape)
	}
	return names, list
}

// Outputs returns the shapes of the results.
func (e *executable) Outputs() []shapes.Shape {
	list := make([]shapes.Shape, len(e.plan.outputs))
	for i, o := range e.plan.outputs {
		list[i] = o.shape
	}
	return list
}

// WorkBytes returns how much memory a run takes besides its inputs and outputs. It is known when a graph is compiled.
func (e *executable) WorkBytes() int { return e.plan.workBytes(e.device.env.pool.Workers()) }

// Execute computes the outputs. It returns an error, and computes nothing, when an input does not fit.
func (e *executable) Execute(
	inputs []compute.Buffer, donate []bool, _ compute.DeviceNum,
) (out []compute.Buffer, err error) {
	if err := e.check(inputs, donate); err != nil {
		return nil, err
	}
	defer func() {
		if value := recover(); value != nil {
			out, err = nil, fmt.Errorf("cpu: %v", value)
		}
	}()
	values, spans := make([]runInput, len(inputs)), make([]span, len(inputs))
	for i, in := range inputs {
		b := in.(*Buffer)
		if spans[i], err = b.span(); err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
		values[i] = runInput{spans[i].base, b.packed}
	}
	results, memory := e.allocate(spans, donate)
	e.program.run(values, memory)
	return e.results(inputs, donate, results), nil
}

// check compares inputs with the parameters.
func (e *executable) check(inputs []compute.Buffer, donate []bool) error {
	if e.program == nil {
		return errors.New("cpu: the executable is finalized")
	}
	want := e.plan.inputs
	if len(inputs) != len(want) || donate != nil && len(donate) != len(inputs) {
		return fmt.Errorf("cpu: %d inputs and %d donations for %d parameters", len(inputs), len(donate), len(want))
	}
	for i, in := range inputs {
		donated := donate != nil && donate[i]
		if err := e.checkInput(i, in, donated); err != nil {
			return err
		}
		if first := slices.Index(inputs, in); first < i && donate != nil && (donate[first] || donated) {
			return fmt.Errorf("cpu: inputs %d and %d are one buffer, which is donated", first, i)
		}
	}
	return nil
}

// checkInput compares an input with its parameter.
func (e *executable) checkInput(i int, in compute.Buffer, donated bool) error {
	want := e.plan.inputs[i]
	b, ok := in.(*Buffer)
	if !ok || b == nil || b.device != e.device {
		return fmt.Errorf("cpu: input %d (%q) is not a buffer of this device", i, want.name)
	}
	if !b.shape.Equal(want.shape) {
		return fmt.Errorf("cpu: input %d (%q) is %s, want %s", i, want.name, b.shape, want.shape)
	}
	if b.packed != nil && (!want.packable || donated) {
		return fmt.Errorf("cpu: input %d (%q) is packed: it can only be multiplied by, from the right, "+
			"or have its rows gathered, and not be donated", i, want.name)
	}
	return nil
}

// allocate returns the memory of the outputs.
func (e *executable) allocate(inputs []span, donate []bool) (results []span, memory []unsafe.Pointer) {
	for _, o := range e.plan.outputs {
		s := span{}
		if o.donor >= 0 && donate != nil && donate[o.donor] {
			s = inputs[o.donor]
		} else {
			s = e.device.env.memory.alloc(bytesOf(o.shape))
		}
		results, memory = append(results, s), append(memory, s.base)
	}
	return results, memory
}

// results wraps the outputs in buffers, and empties those that were donated.
func (e *executable) results(inputs []compute.Buffer, donate []bool, spans []span) []compute.Buffer {
	taken := map[int]bool{}
	out := make([]compute.Buffer, len(e.plan.outputs))
	for i, o := range e.plan.outputs {
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
			e.device.env.memory.release(mem)
		}
	}
	return out
}
