package graphx

import (
	"errors"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// worker is implemented by executables that know how much memory a run takes.
type worker interface {
	WorkBytes() int // besides inputs and outputs
}

// WorkBytes compiles a graph for inputs of these shapes, without running it, and returns how many bytes a run takes
// besides inputs and outputs.
func WorkBytes(exec *graph.Exec, inputs []shapes.Shape) (int64, error) {
	g, err := exec.Compile(inputs...)
	if err != nil {
		return 0, err
	}
	return workOf(g.Executable())
}

// WorkOfGraph is [WorkBytes] of a graph that is compiled for that alone.
func WorkOfGraph(
	device compute.Backend, build func(in []*graph.Node) []*graph.Node, inputs []shapes.Shape,
) (int64, error) {
	run, err := Compile(device, build, inputs)
	if err != nil {
		return 0, err
	}
	defer run.Finalize()
	return workOf(run)
}

// FewLayers is how many layers are compiled to plan for many that are alike, and the least of [WorkOfLayers].
const FewLayers = 4

// WorkOfLayers returns what a graph of many layers takes from two graphs of few. After the first three each layer adds
// as many bytes as any other, if they are alike: its part of what is kept, and nothing of what is needed for a moment.
// work returns the bytes of a graph of so many layers.
func WorkOfLayers(layers int, work func(layers int) (int64, error)) (int64, error) {
	less, err := work(FewLayers - 1)
	if err != nil {
		return 0, err
	}
	few, err := work(FewLayers)
	return few + int64(layers-FewLayers)*(few-less), err
}

func workOf(run compute.Executable) (int64, error) {
	w, ok := run.(worker)
	if !ok {
		return 0, errors.New("graphx: the device does not report how much memory a graph takes; use the CPU device")
	}
	return int64(w.WorkBytes()), nil
}

// Compiled returns how many programs a device has compiled since it was opened, and how long that took: 0 where it does
// not say, because it compiles in a moment.
func Compiled(device compute.Backend) (programs int, took time.Duration) {
	if d, ok := device.(interface {
		Compiled() (programs int, took time.Duration)
	}); ok {
		return d.Compiled()
	}
	return 0, 0
}

// HeldBytes returns the memory that a device keeps for its next runs and that none uses now: 0 where it does not say.
func HeldBytes(device compute.Backend) int64 {
	if d, ok := device.(interface{ HeldBytes() int }); ok {
		return int64(d.HeldBytes())
	}
	return 0
}
