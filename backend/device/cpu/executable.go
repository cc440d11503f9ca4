package cpu

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/compile"
	"github.com/goart-dev/art/backend/device/cpu/internal/exec"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

var _ compute.Executable = (*executable)(nil)

// executable is a compiled graph.
type executable struct {
	device  *Device
	plan    *ir.Plan
	program *exec.Program // nil when finalized
}

// compile compiles a graph.
func (d *Device) compile(s ir.Graph) (*executable, error) {
	p, err := compile.Compile(s, compile.Options{Workers: d.env.Pool.Workers(), Unfused: d.unfused, Evaluate: d.evaluate})
	if err != nil {
		return nil, err
	}
	return &executable{device: d, plan: p, program: exec.Load(&d.env, p)}, nil
}

// evaluate runs a plan without inputs, and returns the memory of its outputs.
func (d *Device) evaluate(p *ir.Plan) ([]unsafe.Pointer, error) {
	var outputs []unsafe.Pointer
	for _, o := range p.Outputs {
		outputs = append(outputs, d.env.Memory.Alloc(bytesOf(o.Shape)).Base)
	}
	exec.Load(&d.env, p).Run(nil, outputs)
	return outputs, nil
}

// Finalize drops the steps.
func (e *executable) Finalize() { e.program = nil }

// Inputs returns names and shapes of the parameters.
func (e *executable) Inputs() (names []string, list []shapes.Shape) {
	for _, in := range e.plan.Inputs {
		names, list = append(names, in.Name), append(list, in.Shape)
	}
	return names, list
}

// Outputs returns the shapes of the results.
func (e *executable) Outputs() []shapes.Shape {
	list := make([]shapes.Shape, len(e.plan.Outputs))
	for i, o := range e.plan.Outputs {
		list[i] = o.Shape
	}
	return list
}

// String prints the plan: inputs, steps, outputs and memory.
func (e *executable) String() string { return e.plan.String() }

// WorkBytes returns how much memory a run takes besides its inputs and outputs. It is known when a graph is compiled.
func (e *executable) WorkBytes() int { return e.plan.WorkBytes(e.device.env.Pool.Workers()) }

// ProgramBytes returns about how much memory the executable takes while nothing runs it. A compiled graph has
// constants, and a step for each operation or several.
func (e *executable) ProgramBytes() int { return e.plan.Bytes() }

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
	values, spans := make([]exec.Input, len(inputs)), make([]memory.Span, len(inputs))
	for i, in := range inputs {
		b := in.(*buffer)
		if spans[i], err = b.span(); err != nil {
			return nil, fmt.Errorf("input %d: %w", i, err)
		}
		values[i] = exec.Input{Base: spans[i].Base, Packed: b.packed}
	}
	var results []memory.Span
	var addresses []unsafe.Pointer
	for _, o := range e.plan.Outputs {
		if o.Donor >= 0 && donate != nil && donate[o.Donor] {
			results = append(results, spans[o.Donor])
		} else {
			results = append(results, e.device.env.Memory.Alloc(bytesOf(o.Shape)))
		}
		addresses = append(addresses, results[len(results)-1].Base)
	}
	e.program.Run(values, addresses)
	return e.results(inputs, donate, results), nil
}

// check compares inputs with the parameters.
func (e *executable) check(inputs []compute.Buffer, donate []bool) error {
	if e.program == nil {
		return errors.New("cpu: the executable is finalized")
	}
	want := e.plan.Inputs
	if len(inputs) != len(want) || donate != nil && len(donate) != len(inputs) {
		return fmt.Errorf("cpu: %d inputs and %d donations for %d parameters", len(inputs), len(donate), len(want))
	}
	for i, in := range inputs {
		donated := donate != nil && donate[i]
		want := e.plan.Inputs[i]
		b, ok := in.(*buffer)
		if !ok || b == nil || b.device != e.device {
			return fmt.Errorf("cpu: input %d (%q) is not a buffer of this device", i, want.Name)
		}
		if !b.shape.Equal(want.Shape) {
			return fmt.Errorf("cpu: input %d (%q) is %s, want %s", i, want.Name, b.shape, want.Shape)
		}
		if b.packed != nil && (!want.Packable || donated) {
			return fmt.Errorf("cpu: input %d (%q) is packed: it can only be multiplied by, from the right, "+
				"or have its rows gathered, and not be donated", i, want.Name)
		}
	}
	return distinct(inputs, donate)
}

// distinct wants a buffer that is donated to be one input.
func distinct(inputs []compute.Buffer, donate []bool) error {
	donated := map[compute.Buffer]int{}
	for i := range donate {
		if donate[i] {
			donated[inputs[i]] = i
		}
	}
	for i, in := range inputs {
		if other, ok := donated[in]; ok && other != i {
			return fmt.Errorf("cpu: inputs %d and %d are one buffer, which is donated", min(i, other), max(i, other))
		}
	}
	return nil
}

// results wraps the outputs in buffers, and empties those that were donated.
func (e *executable) results(inputs []compute.Buffer, donate []bool, spans []memory.Span) []compute.Buffer {
	taken := map[int]bool{}
	out := make([]compute.Buffer, len(e.plan.Outputs))
	for i, o := range e.plan.Outputs {
		out[i] = &buffer{device: e.device, shape: o.Shape, mem: spans[i]}
		if o.Donor >= 0 {
			taken[o.Donor] = true
		}
	}
	for i := range donate {
		if !donate[i] {
			continue
		}
		b := inputs[i].(*buffer)
		if mem := b.take(); !taken[i] && mem.Base != nil {
			e.device.env.Memory.Release(mem)
		}
	}
	return out
}
