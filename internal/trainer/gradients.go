package trainer

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
)

// gradients are on the device, one for each trained tensor. nil when there are none.
type gradients []*tensors.Tensor

func (g gradients) free() { finalize(g) }

// sum adds more to gradients, whose memory the sum takes. Both belong to the result, and are lost after an error.
func (t *Trainer) sum(g, more gradients) (gradients, error) {
	if g == nil || more == nil {
		return append(g, more...), nil
	}
	defer more.free()
	if t.adder == nil {
		n := len(g)
		var err error
		t.adder, err = NewExec(t.opts.Device, func(in []*Node) (out []*Node) {
			for i := range n {
				out = append(out, Add(in[i], in[n+i]))
			}
			return out
		})
		if err != nil {
			return nil, fmt.Errorf("trainer: %w", err)
		}
	}
	in, err := t.donate(g)
	if err != nil {
		return nil, fmt.Errorf("trainer: gradient: %w", err)
	}
	for _, x := range more {
		in = append(in, x)
	}
	out, err := t.adder.Call(in...)
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
	if t.norm == nil {
		var err error
		if t.norm, err = NewExec(t.opts.Device, grpo.GlobalNorm); err != nil {
			return false, fmt.Errorf("trainer: %w", err)
		}
	}
	in := make([]any, len(g))
	for i, x := range g {
		in[i] = x
	}
	out, err := t.norm.Call1(in...)
	if err != nil {
		return false, fmt.Errorf("trainer: norm: %w", err)
	}
	defer finalize([]*tensors.Tensor{out})
	read, err := tensors.CopyFlatData[float32](out)
	if err != nil {
		return false, fmt.Errorf("trainer: norm: %w", err)
	}
	return finite(float64(read[0])), nil
}

// donate returns tensors as inputs that a graph may overwrite. After an error they are freed.
func (t *Trainer) donate(list []*tensors.Tensor) (in []any, err error) {
	for i, x := range list {
		d, err := DonateTensorBuffer(x, t.opts.Device, 0)
		if err != nil {
			finalize(list[i:])
			return nil, err
		}
		in = append(in, d)
	}
	return in, nil
}
