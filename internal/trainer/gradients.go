package trainer

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
)

// gradients are on the device, one for each trained tensor. nil when there are none.
type gradients []*tensors.Tensor

func (g gradients) free() { finalize(g) }

// sum adds more to gradients, whose memory the sum takes. Both belong to the result, and are freed after an error.
func (t *Trainer) sum(g, more gradients) (gradients, error) {
	if g == nil || more == nil {
		return append(g, more...), nil
	}
	defer more.free()
	in, err := graphx.Donate(t.opts.Device, g)
	if err != nil {
		return nil, fmt.Errorf("trainer: gradient: %w", err)
	}
	n := len(g)
	out, err := t.updates.Call("sum", func(in []*Node) (out []*Node) {
		for i := range n {
			out = append(out, Add(in[i], in[n+i]))
		}
		return out
	}, appendInputs(in, more))
	if err != nil {
		return nil, fmt.Errorf("trainer: gradient: %w", err)
	}
	return out, nil
}

// finite reports whether the norm of gradients is, as an update computes it.
func (t *Trainer) finite(g gradients) (bool, error) {
	if g == nil {
		return true, nil
	}
	out, err := t.updates.Call("norm", func(in []*Node) []*Node {
		return []*Node{grpo.GlobalNorm(in)}
	}, appendInputs(nil, g))
	if err != nil {
		return false, fmt.Errorf("trainer: norm: %w", err)
	}
	defer finalize(out)
	read, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		return false, fmt.Errorf("trainer: norm: %w", err)
	}
	return finite(float64(read[0])), nil
}

// appendInputs appends tensors to the inputs of a graph.
func appendInputs(in []any, list []*tensors.Tensor) []any {
	for _, x := range list {
		in = append(in, x)
	}
	return in
}
