package graphtest

import (
	"cmp"
	"sync/atomic"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
)

// Counting returns the CPU device with a count of the graphs that it compiles.
func Counting(t testing.TB) (compute.Backend, *atomic.Int64) {
	t.Helper()
	return CountingOn(Device(t))
}

// CountingOn returns a device with a count of the graphs that it compiles.
func CountingOn(device compute.Backend) (compute.Backend, *atomic.Int64) {
	d := &watchedDevice{Backend: device}
	return d, &d.compiled
}

// Hooks are called before what they are named for, which fails with the error that they return. nil is none.
type Hooks struct {
	Compile  func() error // of a graph
	Run      func() error // of a graph
	Read     func() error // of a buffer
	Finalize func() error // of a buffer

	Ran func() // called after the run of a graph

	Bytes *atomic.Int64 // what buffers take that are neither finalized nor donated
}

// Hooked returns the CPU device with hooks.
func Hooked(t testing.TB, hooks Hooks) compute.Backend {
	t.Helper()
	return HookedOn(Device(t), hooks)
}

// HookedOn returns a device with hooks.
func HookedOn(device compute.Backend, hooks Hooks) compute.Backend {
	return &watchedDevice{Backend: device, hooks: hooks}
}

// NamedOn returns a device that says that it was opened by another name, whose profile it thereby has. As those of XLA
// it does not say what its programs take.
func NamedOn(device compute.Backend, name string) compute.Backend {
	return &watchedDevice{Backend: device, name: name}
}

type watchedDevice struct {
	compute.Backend
	name     string // by which it was opened; "" is that of the watched device
	compiled atomic.Int64
	hooks    Hooks
}

// OpenedAs is what graphx.OpenedAs returns.
func (d *watchedDevice) OpenedAs() string {
	if x, ok := d.Backend.(interface{ OpenedAs() string }); ok && d.name == "" {
		return x.OpenedAs()
	}
	return cmp.Or(d.name, d.Backend.Name())
}

// watchedBuffer says that it belongs to the device that is watched: GoMLX refuses buffers of another one.
type watchedBuffer struct {
	compute.Buffer
	device *watchedDevice
	bytes  atomic.Int64 // 0 when they are not counted any more
}

// watch counts the bytes of a buffer, which may be nil after an error.
func (d *watchedDevice) watch(buffer compute.Buffer) compute.Buffer {
	b := &watchedBuffer{Buffer: buffer, device: d}
	if d.hooks.Bytes == nil || buffer == nil {
		return b
	}
	if shape, err := buffer.Shape(); err == nil {
		b.bytes.Store(shape.ByteSize())
		d.hooks.Bytes.Add(b.bytes.Load())
	}
	return b
}

// gone no longer counts the bytes.
func (b *watchedBuffer) gone() {
	if b.device.hooks.Bytes != nil {
		b.device.hooks.Bytes.Add(-b.bytes.Swap(0))
	}
}

func (b *watchedBuffer) Backend() compute.Backend { return b.device }

func (b *watchedBuffer) Data() (any, error) {
	if err := call(b.device.hooks.Read); err != nil {
		return nil, err
	}
	return b.Buffer.Data()
}

func (b *watchedBuffer) ToFlatData(flat any) error {
	if err := call(b.device.hooks.Read); err != nil {
		return err
	}
	return b.Buffer.ToFlatData(flat)
}

func (b *watchedBuffer) Finalize() error {
	if err := call(b.device.hooks.Finalize); err != nil {
		return err
	}
	b.gone()
	return b.Buffer.Finalize()
}

func (d *watchedDevice) BufferFromFlatData(at compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	buffer, err := d.Backend.BufferFromFlatData(at, flat, shape)
	return d.watch(buffer), err
}

func (d *watchedDevice) NewSharedBuffer(at compute.DeviceNum, shape shapes.Shape) (compute.Buffer, any, error) {
	buffer, flat, err := d.Backend.NewSharedBuffer(at, shape)
	return d.watch(buffer), flat, err
}

func (d *watchedDevice) Builder(name string) compute.Builder {
	return &watchedBuilder{d.Backend.Builder(name), d}
}

type watchedBuilder struct {
	compute.Builder
	device *watchedDevice
}

func (b *watchedBuilder) Compile() (compute.Executable, error) {
	b.device.compiled.Add(1)
	if err := call(b.device.hooks.Compile); err != nil {
		return nil, err
	}
	executable, err := b.Builder.Compile()
	return &watchedExecutable{executable, b.device}, err
}

type watchedExecutable struct {
	compute.Executable
	device *watchedDevice
}

// ProgramBytes is what the watched device says; 0 is nothing.
func (e *watchedExecutable) ProgramBytes() int {
	if x, ok := e.Executable.(interface{ ProgramBytes() int }); ok && e.device.name == "" {
		return x.ProgramBytes()
	}
	return 0
}

func (e *watchedExecutable) Execute(
	in []compute.Buffer, donate []bool, at compute.DeviceNum,
) ([]compute.Buffer, error) {
	if err := call(e.device.hooks.Run); err != nil {
		return nil, err
	}
	own := make([]compute.Buffer, len(in))
	for i, b := range in {
		own[i] = b.(*watchedBuffer).Buffer
	}
	out, err := e.Executable.Execute(own, donate, at)
	if e.device.hooks.Ran != nil {
		e.device.hooks.Ran()
	}
	for i, b := range out {
		out[i] = e.device.watch(b)
	}
	for i, given := range donate {
		if given && err == nil {
			in[i].(*watchedBuffer).gone()
		}
	}
	return out, err
}

func call(hook func() error) error {
	if hook == nil {
		return nil
	}
	return hook()
}
