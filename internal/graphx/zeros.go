package graphx

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// zeroer is a device that has tensors of zeros without writing them.
type zeroer interface {
	Zeros(shape shapes.Shape) (compute.Buffer, error)
}

// ZeroTensors returns n tensors of zeros on the device.
func ZeroTensors(device compute.Backend, shape shapes.Shape, n int) ([]*tensors.Tensor, error) {
	if z, ok := device.(zeroer); ok {
		out := make([]*tensors.Tensor, n)
		for i := range out {
			b, err := z.Zeros(shape)
			if err != nil {
				return nil, fmt.Errorf("graphx: %w", err)
			}
			if out[i], err = tensors.FromBuffer(b); err != nil {
				return nil, fmt.Errorf("graphx: %w", err)
			}
		}
		return out, nil
	}
	exec, err := graph.NewExec(device, func(g *graph.Graph) []*graph.Node {
		out := make([]*graph.Node, n)
		for i := range out {
			out[i] = graph.Zeros(g, shape)
		}
		return out
	})
	if err != nil {
		return nil, fmt.Errorf("graphx: %w", err)
	}
	defer exec.Finalize()
	return exec.Call()
}
