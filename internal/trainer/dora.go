package trainer

import (
	"errors"
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// numNorms is the number of norms that are inputs of a graph.
func (t *Target) numNorms() int {
	if t.dora == nil {
		return 0
	}
	return t.dora.NumNorms()
}

// split builds the model of which a list of inputs begins with the tensors, and returns the trained ones and the rest.
func (t *Target) split(in []*Node) (forward *model.Forward, trained, rest []*Node) {
	frozen, in := in[:len(t.frozen)], in[len(t.frozen):]
	trained, in = in[:t.trained], in[t.trained:]
	norms, rest := in[:t.numNorms()], in[t.numNorms():]
	return t.forward(frozen, trained, norms), trained, rest
}

// normsOf returns what DoRA divides by for these parameters. There are none without it.
func (t *Trainer) normsOf(params []*tensors.Tensor) ([]*tensors.Tensor, error) {
	if t.target.dora == nil {
		return nil, nil
	}
	if t.norms == nil {
		n, err := lora.NewNorms(t.opts.Device)
		if err != nil {
			return nil, fmt.Errorf("trainer: %w", err)
		}
		t.norms = n
	}
	norms, err := t.norms.Of(t.target.dora, params, t.target.weight)
	if err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	return norms, nil
}

// BaseState returns the parameters of an adapter of the shapes of s that changes nothing: zeros, with DoRA beside the
// norms of the base model. The target is an adapter.
func (t *Trainer) BaseState(s *State) (*State, error) {
	if t.target.plan.Full {
		return nil, errors.New("trainer: the base model is no state of zeros where all weights are trained")
	}
	base := &State{Names: s.Names, Shapes: s.Shapes}
	for _, values := range s.Params {
		base.Params = append(base.Params, make([]float32, len(values)))
	}
	if t.target.dora == nil {
		return base, nil
	}
	params, err := t.upload(base, base.Params)
	if err != nil {
		return nil, err
	}
	defer finalize(params)
	norms, err := t.normsOf(params)
	if err != nil {
		return nil, err
	}
	defer finalize(norms)
	for i, x := range norms {
		if base.Params[3*i+2], err = tensors.CopyFlatData[float32](x); err != nil {
			return nil, fmt.Errorf("trainer: %w", err)
		}
	}
	return base, nil
}
