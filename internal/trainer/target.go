package trainer

import (
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
	target := Target{
		layout: layout.LayoutKey(), frozen: params.Tensors, trained: trained, plan: takes, forward: forward,
	}
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
	return Target{
		layout: "full", trained: len(params.Names), plan: plan.TrainingOf(c, nil), forward: forward,
	}
}

// FullState is the state from which all weights are trained.
func FullState(w *model.Weights) *State {
	s := &State{}
	for _, t := range w.Tensors {
		s.add(t.Name, t.Shape, slices.Clone(t.Data))
	}
	return s
}
