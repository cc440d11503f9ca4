package trainer

import (
	"errors"
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// Target is what is trained: it says which tensors are inputs of the graph and how they make a forward pass.
type Target struct {
	layout  string // targets of one base model with equal layouts have equal graphs
	frozen  []*tensors.Tensor
	trained int // tensors
	plan    plan.Training
	forward func(frozen, trained, norms []*Node) *model.Forward
	// dora is the layout of an adapter whose norms are inputs of the graph too; nil for none. weight returns the weights
	// that they are of.
	dora   *lora.Adapter
	weight func(layer string) *tensors.Tensor
}

// check reports a sequence that does not fit the model.
func (t *Target) check(s *grpo.Sequence) error {
	if n := s.NumInputs(); n > t.plan.Config.MaxPositions {
		return fmt.Errorf("needs %d tokens, the model knows %d positions", n, t.plan.Config.MaxPositions)
	}
	for at, id := range s.Targets {
		if s.Trained[at] && int(id) >= t.plan.Config.VocabSize {
			return fmt.Errorf("has target %d at %d, the vocabulary has %d", id, at, t.plan.Config.VocabSize)
		}
	}
	for at, id := range s.IDs {
		if id < 0 || int(id) >= t.plan.Config.VocabSize {
			return fmt.Errorf("has id %d at %d, the vocabulary has %d", id, at, t.plan.Config.VocabSize)
		}
	}
	return nil
}

// AdapterTarget trains an adapter of the given layout; params are the frozen weights.
func AdapterTarget(c *model.Config, params *model.Params, layout *lora.Adapter) Target {
	layout = layout.Clone()
	trained := len(layout.Params())
	takes := plan.TrainingOf(c, layout)
	forward := func(frozen, trained, norms []*Node) *model.Forward {
		f := &model.Forward{Config: c, Param: params.Lookup(frozen), Frozen: !takes.Head}
		f.Linear, f.Embedding = layout.Hooks(lora.Nodes{Trained: trained, Norms: norms, Bias: f.Bias})
		return f
	}
	target := Target{layout: layout.LayoutKey(), frozen: params.Tensors, trained: trained, plan: takes, forward: forward}
	if takes.DoRA {
		target.dora, target.weight = layout, func(layer string) *tensors.Tensor { return params.Weight(c, layer) }
	}
	return target
}

// AdapterState is the state from which an adapter is trained.
func AdapterState(a *lora.Adapter) *State {
	s := &State{}
	for _, p := range a.Params() {
		s.add(p.Name, p.Shape, p.Data)
	}
	return s
}

// FullTarget trains all weights.
func FullTarget(c *model.Config) Target {
	params := &model.Params{}
	for _, s := range c.Specs() {
		params.Names = append(params.Names, s.Name)
	}
	forward := func(_, trained, _ []*Node) *model.Forward {
		return &model.Forward{Config: c, Param: params.Lookup(trained)}
	}
	return Target{layout: "full", trained: len(params.Names), plan: plan.TrainingOf(c, nil), forward: forward}
}

// FullState is the state from which all weights are trained.
func FullState(w *model.Weights) *State {
	s := &State{}
	for _, t := range w.Tensors {
		s.add(t.Name, t.Shape, slices.Clone(t.Data))
	}
	return s
}

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
