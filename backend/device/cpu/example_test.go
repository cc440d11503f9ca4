package cpu_test

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/backend/device/cpu"
)

// A graph of GoMLX computes on the device.
func Example() {
	device, err := cpu.New(nil)
	check(err)
	defer device.Finalize()
	exec, err := graph.NewExec(device, func(x, w *graph.Node) *graph.Node { return graph.MatMul(x, w) })
	check(err)
	defer exec.Finalize()

	y, err := exec.Call1([][]float32{{1, 2}}, [][]float32{{3}, {4}})
	check(err)
	fmt.Println(y.Shape(), y.Value())
	// Output: (Float32)[1, 1] [[11]]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
