package trainer

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/model"
)

// Replica is a further device of the same kind, which computes micro-batches of a training beside the first one.
type Replica struct {
	Device compute.Backend
	// Params are the frozen weights on it.
	Params *model.Params
	// Programs are the compiled graphs for it, as those of [Options] are for the first device. Required.
	Programs *graphx.Programs
}

// place is a device that computes micro-batches: the first one, which has the state of a training, or a replica. What a
// micro-batch needs of the state is copied to a replica, and its gradient back, so that sums are added in the same
// order on the same device: on equal devices no bit of a step depends on their number.
type place struct {
	device   compute.Backend
	programs *graphx.Programs
	frozen   []*tensors.Tensor
}

// places lists the first device and the replicas.
func (t *Trainer) places() []place {
	list := []place{{t.opts.Device, t.programs, t.target.frozen}}
	for _, r := range t.opts.Replicas {
		p := place{device: r.Device, programs: r.Programs}
		if !t.target.plan.Full {
			p.frozen = r.Params.Tensors
		}
		list = append(list, p)
	}
	return list
}

// shared lists the inputs that all micro-batches have in common, for each device: the frozen tensors, the trained ones,
// and the norms of those. free releases what was made.
func (t *Trainer) shared(trained []*tensors.Tensor) (in [][]any, free func(), err error) {
	made, err := t.normsOf(trained)
	if err != nil {
		return nil, nil, err
	}
	free = func() { finalize(made) }
	first := slices.Concat(trained, made)
	for i, p := range t.places() {
		own := first
		if i > 0 {
			if own, err = copyTo(p.device, first); err != nil {
				free()
				return nil, nil, err
			}
			made = append(made, own...)
		}
		var list []any
		for _, x := range slices.Concat(p.frozen, own) {
			list = append(list, x)
		}
		in = append(in, list)
	}
	return in, free, nil
}

// home moves gradients from a device to the first one.
func (t *Trainer) home(at int, grads []*tensors.Tensor) ([]*tensors.Tensor, error) {
	if at == 0 {
		return grads, nil
	}
	defer finalize(grads)
	return copyTo(t.opts.Device, grads)
}

// copyTo copies float32 tensors to another device.
func copyTo(device compute.Backend, list []*tensors.Tensor) (out []*tensors.Tensor, err error) {
	for _, x := range list {
		bad := tensors.ConstFlatData(x, func(values []float32) {
			var y *tensors.Tensor
			if y, err = graphx.Upload(device, values, x.Shape().Dimensions...); err == nil {
				out = append(out, y)
			}
		})
		if bad != nil {
			err = bad
		}
		if err != nil {
			finalize(out)
			return nil, fmt.Errorf("trainer: replica: %w", err)
		}
	}
	return out, nil
}
