package local

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/model"
)

// replica is a base model on one of the devices beside the first one.
type replica struct {
	device   compute.Backend
	params   *model.Params
	training *graphx.Programs // of all models on it
}

// openReplicas opens the devices of Options.Replicas.
func openReplicas(names []string, first compute.Backend) (list []compute.Backend, err error) {
	for _, name := range names {
		device, err := openDevice(name)
		if err != nil {
			return nil, err
		}
		if device.Name() != first.Name() {
			err := fmt.Errorf("%w: %q is a replica of a device of another kind, %q", art.ErrInvalid, device.Name(), first.Name())
			return nil, &art.Error{Op: "open", Err: err, Hint: "use Replicas of local.Options for equal devices of one host"}
		}
		list = append(list, device)
	}
	return list, nil
}

// replicate uploads the weights to the other devices.
func (s *base) replicate(ctx context.Context, open *basemodel.Base, b *Backend) error {
	for _, device := range b.replicas {
		params, err := open.ParamsContext(ctx, device, b.matrices)
		if err != nil {
			return err
		}
		s.replicas = append(s.replicas, replica{device, params, graphx.NewPrograms(device, plan.TrainingPrograms(s.config))})
	}
	return nil
}

// trainerReplicas are those of a trainer.
func (s *base) trainerReplicas() (list []trainer.Replica) {
	for _, r := range s.replicas {
		list = append(list, trainer.Replica{Device: r.device, Params: r.params, Programs: r.training})
	}
	return list
}
