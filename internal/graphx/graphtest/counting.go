package graphtest

import (
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
	d := &countingDevice{Backend: device}
	return d, &d.compiled
}

type countingDevice struct {
	compute.Backend
	compiled atomic.Int64
}

// countingBuffer says that it belongs to the device that counts: GoMLX refuses buffers of another one.
type countingBuffer struct {
	compute.Buffer
	device *countingDevice
}

func (b *countingBuffer) Backend() compute.Backend { return b.device }

func (d *countingDevice) BufferFromFlatData(at compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	buffer, err := d.Backend.BufferFromFlatData(at, flat, shape)
	return &countingBuffer{buffer, d}, err
}

func (d *countingDevice) NewSharedBuffer(at compute.DeviceNum, shape shapes.Shape) (compute.Buffer, any, error) {
	buffer, flat, err := d.Backend.NewSharedBuffer(at, shape)
	return &countingBuffer{buffer, d}, flat, err
}

func (d *countingDevice) Builder(name string) compute.Builder {
	return &countingBuilder{d.Backend.Builder(name), d}
}

type countingBuilder struct {
	compute.Builder
	device *countingDevice
}

func (b *countingBuilder) Compile() (compute.Executable, error) {
	b.device.compiled.Add(1)
	executable, err := b.Builder.Compile()
	return &countingExecutable{executable, b.device}, err
}

type countingExecutable struct {
	compute.Executable
	device *countingDevice
}

func (e *countingExecutable) Execute(in []compute.Buffer, donate []bool, at compute.DeviceNum) ([]compute.Buffer, error) {
	own := make([]compute.Buffer, len(in))
	for i, b := range in {
		own[i] = b.(*countingBuffer).Buffer
	}
	out, err := e.Executable.Execute(own, donate, at)
	for i, b := range out {
		out[i] = &countingBuffer{b, e.device}
	}
	return out, err
}
