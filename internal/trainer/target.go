package trainer

import (
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// Target is what is trained: it says which tensors are inputs of the graph and how they make a forward pass.
type Target struct {
	config  *model.Config
	layout  string // targets of one base model with equal layouts have equal graphs
	frozen  []*tensors.Tensor
	trained int // tensors
	// numParams is the number of what is trained.
	numParams float64
	full      bool // all weights are trained
	head      bool // the output head is trained, or has an adapter: logits of all trained tokens are kept
	forward   func(frozen, trained, norms []*Node) *model.Forward
	// dora is the layout of an adapter whose norms are inputs of the graph too; nil for none. weight returns the weights
	// that they are of.
	dora   *lora.Adapter
	weight func(layer string) *tensors.Tensor
}

// check reports a sequence that does not fit the model.
func (t *Target) check(s *grpo.Sequence) error {
	if n := s.NumInputs(); n > t.config.MaxPositions {
		return fmt.Errorf("needs %d tokens, the model knows %d positions", n, t.config.MaxPositions)
	}
	for at, id := range s.Targets {
		if s.Trained[at] && int(id) >= t.config.VocabSize {
			return fmt.Errorf("has target %d at %d, the vocabulary has %d", id, at, t.config.VocabSize)
		}
	}
	for at, id := range s.IDs {
		if id < 0 || int(id) >= t.config.VocabSize {
			return fmt.Errorf("has id %d at %d, the vocabulary has %d", id, at, t.config.VocabSize)
		}
	}
	return nil
}

// AdapterTarget trains an adapter of the given layout; params are the frozen weights.
func AdapterTarget(c *model.Config, params *model.Params, layout *lora.Adapter) Target {
	layout = layout.Clone()
	trained := len(layout.Params())
	_, head := layout.Layer("lm_head")
	forward := func(frozen, trained, norms []*Node) *model.Forward {
		f := &model.Forward{Config: c, Param: params.Lookup(frozen), Frozen: !head}
		f.Linear, f.Embedding = layout.Hooks(lora.Nodes{Trained: trained, Norms: norms, Bias: f.Bias})
		return f
	}
	target := Target{
		config: c, layout: layout.LayoutKey(), frozen: params.Tensors, trained: trained,
		numParams: float64(layout.NumParams()), head: head, forward: forward,
	}
	if layout.NumNorms() > 0 {
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
		config: c, layout: "full", trained: len(params.Names), numParams: numParams(c), full: true, head: true,
		forward: forward,
	}
}

// numParams is the number of all weights.
func numParams(c *model.Config) (n float64) {
	for _, s := range c.Specs() {
		size := 1.0
		for _, d := range s.Shape {
			size *= float64(d)
		}
		n += size
	}
	return n
}

// FullState is the state from which all weights are trained.
func FullState(w *model.Weights) *State {
	s := &State{}
	for _, t := range w.Tensors {
		s.add(t.Name, t.Shape, slices.Clone(t.Data))
	}
	return s
}
