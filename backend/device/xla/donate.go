//go:build cgo

package xla

import (
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	goxla "github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/stablehlo"
)

// device is go-xla's, with donation. XLA writes a result into the memory of an input only where the program said so
// when it was compiled: a cache of gigabytes is otherwise copied at each call. go-xla compiles programs that say
// nothing, so this device compiles a program when the first call tells which of its inputs are donated, with a mark at
// those.
type device struct {
	*goxla.Backend
	name  string            // that it was opened by: "xla:cuda"
	first compute.DeviceNum // of the plug-in's devices; to GoMLX it is number 0, the only one
	flash bool              // attention may be cuDNN's

	programs  atomic.Int64 // that were compiled
	compiling atomic.Int64 // nanoseconds that this took
}

// Compiled returns how many programs the device has compiled since it was opened, and how long that took, all together.
// Those that were read from the folder of [CacheEnv] count too.
func (d *device) Compiled() (programs int, took time.Duration) {
	return int(d.programs.Load()), time.Duration(d.compiling.Load())
}

// OpenedAs is the name of the plug-in that the device is of, as "xla:cuda".
func (d *device) OpenedAs() string { return d.name }

// FlashAttention reports whether cuDNN computes attention: on a GPU, for heads of a dimension that its kernels have.
func (d *device) FlashAttention(headDim int) bool { return d.flash && headDim%8 == 0 && headDim <= 128 }

// compile compiles what a builder has built.
func (d *device) compile(b *goxla.Builder) (compute.Executable, error) {
	start := time.Now()
	made, err := b.Compile()
	d.compiling.Add(int64(time.Since(start)))
	if err != nil {
		return nil, d.fault(err, ErrCompile)
	}
	d.programs.Add(1)
	return made, nil
}

// donor marks a parameter of a StableHLO program whose memory XLA may use for a result of the same size.
const donor = "jax.buffer_donor"

// Builder implements [compute.Backend].
func (d *device) Builder(name string) compute.Builder {
	b, ok := d.Backend.Builder(name).(*goxla.Builder)
	if !ok {
		return nil // it has logged why
	}
	return &builder{b, d}
}

// NumDevices implements [compute.Backend].
func (d *device) NumDevices() int { return 1 }

// DeviceDescription implements [compute.Backend].
func (d *device) DeviceDescription(at compute.DeviceNum) string {
	return d.Backend.DeviceDescription(d.first + at)
}

// BufferFromFlatData implements [compute.Backend].
func (d *device) BufferFromFlatData(at compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	b, err := d.Backend.BufferFromFlatData(d.first+at, flat, shape)
	return d.own(b), d.fault(err, nil)
}

// NewSharedBuffer implements [compute.Backend]. XLA copies such a buffer where it is donated, so nothing that the host
// still sees is overwritten.
func (d *device) NewSharedBuffer(at compute.DeviceNum, shape shapes.Shape) (compute.Buffer, any, error) {
	b, flat, err := d.Backend.NewSharedBuffer(d.first+at, shape)
	return d.own(b), flat, d.fault(err, nil)
}

// own returns a buffer of go-xla as one of this device.
func (d *device) own(b compute.Buffer) compute.Buffer {
	if b == nil {
		return nil
	}
	return &buffer{b, d}
}

// buffer belongs to this device: GoMLX refuses buffers of another one.
type buffer struct {
	compute.Buffer
	on *device
}

// Backend implements [compute.Buffer].
func (b *buffer) Backend() compute.Backend { return b.on }

// DeviceNum implements [compute.Buffer].
func (b *buffer) DeviceNum() (compute.DeviceNum, error) {
	at, err := b.Buffer.DeviceNum()
	return at - b.on.first, b.on.fault(err, nil)
}

// CopyToDevice implements [compute.Buffer].
func (b *buffer) CopyToDevice(to compute.DeviceNum) (compute.Buffer, error) {
	copied, err := b.Buffer.CopyToDevice(b.on.first + to)
	return b.on.own(copied), b.on.fault(err, nil)
}

// ToFlatData implements [compute.Buffer].
func (b *buffer) ToFlatData(flat any) error { return b.on.fault(b.Buffer.ToFlatData(flat), nil) }

// builder is go-xla's. Its functions, closures and values are go-xla's own.
type builder struct {
	*goxla.Builder
	on *device
}

// Compile implements [compute.Builder]. A program of which no input could become a result is compiled at once, others
// at their first call, whose error may then be that of the compiler.
func (b *builder) Compile() (compute.Executable, error) {
	main, err := programOf(b.Main())
	if err != nil {
		return nil, err
	}
	e := &executable{builder: b, main: main, made: map[string]compute.Executable{}}
	e.candidates = make([]bool, len(main.Inputs))
	for i, in := range main.Inputs {
		e.candidates[i] = slices.ContainsFunc(main.Outputs, func(out *stablehlo.Value) bool {
			return in.Shape().Equal(out.Shape())
		})
	}
	if !slices.Contains(e.candidates, true) {
		_, err = e.compiled(nil)
	}
	return e, err
}

// programOf returns the StableHLO of a function of go-xla, which is in a private field of it.
func programOf(f compute.Function) (*stablehlo.Function, error) {
	if of := reflect.ValueOf(f); of.Kind() == reflect.Pointer && of.Elem().Kind() == reflect.Struct {
		field := of.Elem().FieldByName("fn")
		if field.IsValid() && field.Type() == reflect.TypeFor[*stablehlo.Function]() && !field.IsNil() {
			return (*stablehlo.Function)(field.UnsafePointer()), nil
		}
	}
	return nil, errors.New("xla: a function of this go-xla has no field fn of type *stablehlo.Function, through which " +
		"inputs are marked as donated: adapt programOf, or stay at the version in go.mod")
}

// executable is a program, compiled for each set of inputs that calls have donated.
type executable struct {
	builder    *builder
	main       *stablehlo.Function
	candidates []bool // inputs that have the shape of a result

	mu   sync.Mutex
	made map[string]compute.Executable // by marks
}

// Execute implements [compute.Executable].
func (e *executable) Execute(
	in []compute.Buffer, donate []bool, at compute.DeviceNum,
) ([]compute.Buffer, error) {
	made, err := e.compiled(e.marks(in, donate))
	if err != nil {
		return nil, err
	}
	inner := make([]compute.Buffer, len(in))
	for i, b := range in {
		own, ok := b.(*buffer)
		if !ok {
			return nil, errors.New("xla: an input is not a buffer of this device")
		}
		inner[i] = own.Buffer
	}
	out, err := made.Execute(inner, donate, e.builder.on.first+at)
	for i, b := range out {
		out[i] = e.builder.on.own(b)
	}
	return out, e.builder.on.fault(err, nil)
}

// marks are the inputs to be marked as donated: those that are and that a result fits into. The marks of a program are
// thereby the same in nearly all calls, which matters because each set of them is compiled. A buffer that is given
// twice is not marked, which XLA would refuse; nor is anything in a program for several devices.
func (e *executable) marks(in []compute.Buffer, donate []bool) []bool {
	if len(in) != len(e.candidates) || len(donate) != len(in) {
		return nil
	}
	places := map[compute.Buffer]int{}
	for _, b := range in {
		places[b]++
	}
	marks := make([]bool, len(in))
	for i := range marks {
		marks[i] = donate[i] && e.candidates[i] && places[in[i]] == 1
	}
	return marks
}

// compiled returns the program with some inputs marked, nil for none.
func (e *executable) compiled(marks []bool) (compute.Executable, error) {
	key := make([]byte, len(e.candidates))
	for i := range marks {
		if marks[i] {
			key[i] = 1
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if made := e.made[string(key)]; made != nil {
		return made, nil
	}
	for i, in := range e.main.Inputs {
		mark(in, key[i] == 1)
	}
	made, err := e.builder.on.compile(e.builder.Builder)
	if err != nil {
		return nil, err
	}
	e.made[string(key)] = made
	return made, nil
}

// mark marks a parameter as donated, or not. Other attributes stay.
func mark(parameter *stablehlo.Value, donated bool) {
	if !donated {
		delete(parameter.Attributes, donor)
		return
	}
	if parameter.Attributes == nil {
		parameter.Attributes = map[string]any{}
	}
	parameter.Attributes[donor] = true
}

// Ready compiles the program for calls that donate nothing, if it is not.
func (e *executable) Ready() error {
	_, err := e.compiled(nil)
	return err
}

// Inputs implements [compute.Executable]. It is nil for a program that does not compile, as Execute reports.
func (e *executable) Inputs() (names []string, list []shapes.Shape) {
	made, err := e.compiled(nil)
	if err != nil {
		return nil, nil
	}
	return made.Inputs()
}

// Outputs implements [compute.Executable], as Inputs does.
func (e *executable) Outputs() []shapes.Shape {
	made, err := e.compiled(nil)
	if err != nil {
		return nil
	}
	return made.Outputs()
}

// Finalize implements [compute.Executable].
func (e *executable) Finalize() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, made := range e.made {
		made.Finalize()
	}
	e.made = map[string]compute.Executable{}
}
