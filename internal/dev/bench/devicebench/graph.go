package devicebench

import (
	"fmt"
	"runtime"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// graph is a computation of float32 tensors that is being built. Building it panics, as GoMLX does.
type graph struct{ f compute.Function }

// float32s is the shape of a tensor.
func float32s(dims ...int) shapes.Shape { return shapes.Make(dtypes.Float32, dims...) }

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// program is a compiled graph with its inputs.
type program struct {
	device  compute.Backend
	exec    compute.Executable
	inputs  []compute.Buffer
	donate  []bool // inputs that the outputs overwrite
	traffic int    // bytes of inputs and outputs
}

// compile builds the graph of a job, and fills the inputs.
func compile(device compute.Backend, j Job) (p *program, err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("building the graph: %v", problem)
		}
	}()
	p = &program{device: device}
	b := device.Builder("art")
	x := make([]compute.Value, len(j.inputs))
	for i, dims := range j.inputs {
		x[i] = must(b.Main().Parameter(fmt.Sprint("x", i), float32s(dims...), nil))
	}
	if err := b.Main().Return(j.build(graph{b.Main()}, x), nil); err != nil {
		return nil, err
	}
	if p.exec, err = b.Compile(); err != nil {
		return nil, err
	}
	for i, dims := range j.inputs {
		values := fill
		if x, ok := j.number[i]; ok {
			values = repeat(x)
		}
		if err := p.input(float32s(dims...), values); err != nil {
			return nil, err
		}
		p.donate = append(p.donate, i < j.state)
	}
	for _, s := range p.exec.Outputs() {
		p.traffic += s.Size() * 4
	}
	return p, nil
}

// input adds an input, in memory that the device shares: large weights are not copied.
func (p *program) input(shape shapes.Shape, values func(x []float32)) error {
	buffer, flat, err := p.device.NewSharedBuffer(0, shape)
	if err != nil {
		return err
	}
	values(flat.([]float32))
	p.inputs = append(p.inputs, buffer)
	p.traffic += shape.Size() * 4
	return nil
}

// fill writes pseudo-random numbers of [-0.5, 0.5): not zeros, which some CPUs handle faster.
func fill(x []float32) {
	state := uint32(1)
	for i := range x {
		state = state*1664525 + 1013904223
		x[i] = float32(state>>8)/(1<<24) - 0.5
	}
}

// repeat returns a function that writes one number everywhere.
func repeat(number float32) func(x []float32) {
	return func(x []float32) {
		for i := range x {
			x[i] = number
		}
	}
}

// once computes the outputs. Those that overwrote inputs become the inputs of the next run; the others are dropped.
func (p *program) once() error {
	out, err := p.exec.Execute(p.inputs, p.donate, 0)
	if err != nil {
		return err
	}
	for i, b := range out {
		if p.donate[i] {
			p.inputs[i] = b
			continue
		}
		if err := b.Finalize(); err != nil {
			return err
		}
	}
	return nil
}

// close drops the inputs and runs the garbage collector, so that large weights make room for the next ones.
func (p *program) close() {
	for _, b := range p.inputs {
		_ = b.Finalize() // it only releases memory
	}
	p.exec.Finalize()
	p.inputs = nil
	runtime.GC()
}
