package graphx

import (
	"errors"
	"fmt"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/machine"
)

// Programs are compiled graphs that are kept for their next call, as many as a number of bytes has room for: those that
// were called last. Of a graph its program is kept alone, none of the nodes that GoMLX's Exec keeps. It is safe for
// concurrent use.
type Programs struct {
	device compute.Backend
	most   int64

	mu    sync.Mutex
	kept  map[any]*program
	bytes int64 // of those that are compiled
	calls int   // so far
}

// program is a compiled graph, or one that is being compiled.
type program struct {
	compiled sync.Once
	run      compute.Executable // nil after an error
	err      error
	bytes    int64
	users    int // calls in progress
	last     int // number of the call that used it last
}

// NewPrograms returns an empty cache of programs that take no more than most bytes, or than the largest of them.
func NewPrograms(device compute.Backend, most int64) *Programs {
	return &Programs{device: device, most: most, kept: map[any]*program{}}
}

// Donated is a tensor whose memory a call may give to one of its outputs. It holds nothing else any more, and is gone
// after the call, also when that fails.
type Donated struct {
	shape  shapes.Shape
	buffer compute.Buffer
}

// Donate takes the memory of tensors for a call of [Programs], each as a [Donated]. After an error all of them are
// freed.
func Donate(device compute.Backend, list []*tensors.Tensor) ([]any, error) {
	donated := make([]any, len(list))
	for i, x := range list {
		d := Donated{shape: x.Shape()}
		var err error
		if d.buffer, err = x.DonateBuffer(device, 0); err != nil {
			free(donated[:i])
			finalize(list[i:])
			return nil, fmt.Errorf("graphx: %w", err)
		}
		donated[i] = d
	}
	return donated, nil
}

// free frees those of inputs that are donated, at once: the garbage collector knows nothing of the memory of a device.
func free(inputs []any) {
	freed := map[compute.Buffer]bool{}
	for _, x := range inputs {
		if d, ok := x.(Donated); ok && !freed[d.buffer] {
			freed[d.buffer] = true
			_ = d.buffer.Finalize() // the error before this one is the one to report
		}
	}
}

// finalize frees tensors after an error, which is the one to report.
func finalize(list []*tensors.Tensor) {
	for _, x := range list {
		_ = x.FinalizeAll()
	}
}

// Call runs the program of a key, which stands for a graph and the shapes of its inputs. It is compiled if it is not
// kept. Each of the inputs is a [*tensors.Tensor] or a [Donated]. After an error the donated ones are freed.
func (p *Programs) Call(
	key any, build func(in []*graph.Node) []*graph.Node, inputs []any,
) (outputs []*tensors.Tensor, err error) {
	results, err := p.run(key, build, inputs)
	if err != nil {
		free(inputs) // a device takes them when it succeeds
		return nil, err
	}
	return tensorsOf(results)
}

// run runs the program of a key. After an error the donated inputs are there still.
func (p *Programs) run(
	key any, build func(in []*graph.Node) []*graph.Node, inputs []any,
) ([]compute.Buffer, error) {
	list, err := shapesOf(inputs)
	if err != nil {
		return nil, err
	}
	x := p.take(key)
	defer p.release(key, x)
	if err := x.compile(p.device, build, list); err != nil {
		return nil, err
	}
	return execute(p.device, x.run, inputs)
}

// Compile compiles the program of a key ahead of its calls, if it is not kept, for inputs of which none is donated. It
// may be called at the same time as others, of the same key too, and its error is that of the call. What is compiled
// may be dropped before its call, if there is no room for it: see [Programs.Room].
func (p *Programs) Compile(key any, build func(in []*graph.Node) []*graph.Node, inputs []any) error {
	list, err := shapesOf(inputs)
	if err != nil {
		return err
	}
	x := p.take(key)
	defer p.release(key, x)
	if err := x.compile(p.device, build, list); err != nil {
		return err
	}
	// Devices of XLA leave a program that might get donated inputs to its first call.
	if waits, ok := x.run.(interface{ Ready() error }); ok {
		if err := waits.Ready(); err != nil {
			return fmt.Errorf("graphx: %w", err)
		}
	}
	return nil
}

// compile compiles the program, unless that was done.
func (x *program) compile(
	device compute.Backend, build func(in []*graph.Node) []*graph.Node, inputs []shapes.Shape,
) error {
	x.compiled.Do(func() {
		x.run, x.err = Compile(device, build, inputs)
		machine.CollectAtOnce() // the graph: up to 160 MB, beside the memory that the run allocates
	})
	return x.err
}

// Room is how many programs of a usual size are kept, on a device that does not say what a program takes.
func (p *Programs) Room() int { return RoomIn(p.Most()) }

// RoomIn is how many programs are kept in so many bytes, on a device that does not say what a program takes.
func RoomIn(bytes int64) int { return int(max(1, bytes/unknownProgram)) }

// RoomFor is for [NewPrograms]: the bytes in which n programs are kept, on a device that does not say what a program
// takes.
func RoomFor(n int) int64 { return int64(n) * unknownProgram }

// shapesOf returns the shapes of inputs.
func shapesOf(inputs []any) ([]shapes.Shape, error) {
	list := make([]shapes.Shape, len(inputs))
	for i, x := range inputs {
		switch x := x.(type) {
		case *tensors.Tensor:
			list[i] = x.Shape()
		case Donated:
			list[i] = x.shape
		default:
			return nil, fmt.Errorf("graphx: input %d is a %T, want a tensor", i, x)
		}
	}
	return list, nil
}

// take returns the program of a key, and notes that a call uses it.
func (p *Programs) take(key any) *program {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.kept[key]
	if x == nil {
		x = &program{}
		p.kept[key] = x
	}
	p.calls++
	x.users, x.last = x.users+1, p.calls
	return x
}

// release ends the use of a program by a call, and drops what there is no room for.
func (p *Programs) release(key any, x *program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.users--
	switch {
	case x.run == nil:
		if p.kept[key] == x { // the next call tries again
			delete(p.kept, key)
		}
	case x.bytes == 0:
		x.bytes = ProgramBytes(x.run)
		p.bytes += x.bytes
	}
	p.trim()
}

// Most is what programs may take together.
func (p *Programs) Most() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

// Limit changes what programs may take together, and drops those that there is no room for.
func (p *Programs) Limit(most int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = most
	p.trim()
}

// trim drops what there is no room for.
func (p *Programs) trim() {
	for p.bytes > p.most && p.dropOldest() {
	}
}

// dropOldest drops the program that was not used for longest, and none that is in use or was used last.
func (p *Programs) dropOldest() bool {
	var oldest any
	for key, x := range p.kept {
		if x.users == 0 && x.bytes > 0 && x.last < p.calls && (oldest == nil || x.last < p.kept[oldest].last) {
			oldest = key
		}
	}
	if oldest == nil {
		return false
	}
	x := p.kept[oldest]
	delete(p.kept, oldest)
	p.bytes -= x.bytes
	x.run.Finalize()
	return true
}

// Len is the number of programs that are kept.
func (p *Programs) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.kept)
}

// Bytes is what the programs take that are kept; see [ProgramBytes].
func (p *Programs) Bytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

// Compile compiles a graph for inputs of some shapes.
func Compile(
	device compute.Backend, build func(in []*graph.Node) []*graph.Node, inputs []shapes.Shape,
) (compute.Executable, error) {
	var g *graph.Graph
	var failed error
	err := Try(func() {
		g = graph.NewGraph(device, "program")
		var in []*graph.Node
		for i, s := range inputs {
			in = append(in, graph.Parameter(g, fmt.Sprintf("arg%d", i), s))
		}
		failed = g.Compile(build(in)...)
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("graphx: %w", err)
	}
	return g.Executable(), nil
}

// execute runs a program.
func execute(device compute.Backend, run compute.Executable, inputs []any) ([]compute.Buffer, error) {
	buffers, donated := make([]compute.Buffer, len(inputs)), make([]bool, len(inputs))
	for i, x := range inputs {
		if d, ok := x.(Donated); ok {
			buffers[i], donated[i] = d.buffer, true
			continue
		}
		var err error
		if buffers[i], err = x.(*tensors.Tensor).Buffer(device, 0); err != nil {
			return nil, fmt.Errorf("graphx: input %d: %w", i, err)
		}
	}
	results, err := run.Execute(buffers, donated, 0)
	if err != nil {
		return nil, fmt.Errorf("graphx: %w", err)
	}
	return results, nil
}

// tensorsOf returns the results of a run as tensors. After an error all of them are freed.
func tensorsOf(results []compute.Buffer) ([]*tensors.Tensor, error) {
	out := make([]*tensors.Tensor, len(results))
	for i, b := range results {
		var err error
		if out[i], err = tensors.FromBuffer(b); err != nil {
			finalize(out[:i])
			for _, b := range results[i:] {
				_ = b.Finalize()
			}
			return nil, fmt.Errorf("graphx: output %d: %w", i, err)
		}
	}
	return out, nil
}

// unknownProgram is what a program counts for on a device that does not say what it takes.
const unknownProgram = 1 << 20

// ProgramBytes returns about how many bytes a compiled graph takes while none runs it: its constants and its steps.
// Where the device does not say, or says 0, it is 1 MiB.
func ProgramBytes(run compute.Executable) int64 {
	if x, ok := run.(interface{ ProgramBytes() int }); ok && x.ProgramBytes() > 0 {
		return int64(x.ProgramBytes())
	}
	return unknownProgram
}
