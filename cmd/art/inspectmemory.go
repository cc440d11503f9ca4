package main

import (
	"cmp"
	"fmt"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// memoryPlan are the sizes that memory is computed for.
type memoryPlan struct {
	lengths        []int
	slots, workers int
	tokens         int          // of the cache; 0: the length for each slot
	adapter        lora.Config  // without targets and rank: that of the run
	full           bool         // all weights are trained
	on             string       // the device that programs are listed for; "" for none
	matrices       dtypes.DType // of its weights
	cacheType      dtypes.DType
}

// layout is the adapter that memory is computed for; run is nil without a run. Of a run, what is not chosen is kept.
func (p memoryPlan) layout(c *model.Config, run *adapterReport) (*lora.Adapter, error) {
	cfg := p.adapter
	chosen := cfg.Pattern != "" || cfg.Targets != nil
	if run != nil {
		if !chosen && cfg.Rank == 0 && cfg.Ranks == nil && !cfg.DoRA {
			return run.adapter, nil
		}
		cfg.Rank, cfg.DoRA = cmp.Or(cfg.Rank, run.Rank), cfg.DoRA || run.adapter.Config().DoRA
	}
	if run != nil && !chosen {
		var layers []lora.LayerShape
		for _, l := range run.adapter.Layers() {
			layers = append(layers, l.LayerShape)
		}
		cfg.Targets = run.adapter.Config().Targets
		if kept := run.adapter.Config(); cfg.Ranks == nil { // with the order of its patterns
			kept.Rank, kept.DoRA, kept.Alphas = cfg.Rank, cfg.DoRA, nil
			cfg = kept
		}
		return lora.New(cfg, layers, 0)
	}
	var layers []lora.LayerShape
	for _, l := range c.Adaptable() {
		layers = append(layers, lora.LayerShape(l))
	}
	return lora.New(cfg, layers, 0)
}

// memory returns the memory of a model at each length.
func (p memoryPlan) memory(c *model.Config, run *adapterReport) ([]lengthMemory, error) {
	device, err := cpu.New(nil)
	if err != nil {
		return nil, err
	}
	defer device.Finalize()
	layout, err := p.layout(c, run)
	if err != nil {
		return nil, err
	}
	trained := layout
	if p.full {
		trained = nil
	}
	var list []lengthMemory
	for _, length := range p.of(c) {
		if length > c.MaxPositions {
			return list, fmt.Errorf("length %d: the model has a context of %d tokens: use --lengths", length, c.MaxPositions)
		}
		m := lengthMemory{
			Length: length, Slots: p.slots, Tokens: cmp.Or(p.tokens, p.slots*length), Process: plan.ProcessBytes,
		}
		if m.Tokens < length {
			return list, fmt.Errorf("length %d: a cache of %d tokens does not hold it: raise --cache-tokens", length, m.Tokens)
		}
		serving := engine.Options{Device: device, Config: c, Slots: p.slots, Context: length, CacheTokens: m.Tokens}
		if m.Inference, err = engine.Plan(serving, layout); err != nil {
			return list, err
		}
		opts := trainer.Options{Device: device, Workers: p.workers}
		if m.Training, err = trainer.Plan(c, trained, length, opts); err != nil {
			return list, err
		}
		opts.Recompute = true
		if m.Recomputed, err = trainer.Plan(c, trained, length, opts); err != nil {
			return list, err
		}
		held := m.Process + m.Inference.Weights + m.Inference.Cache
		m.Infer = held + m.Inference.Programs + m.Inference.Work
		m.Train = held + training(m.Inference, m.Training)
		m.Least = held + training(m.Inference, m.Recomputed)
		list = append(list, m)
	}
	return list, nil
}

// training is what a training adds to what is held. Its work shares the memory of that of inference.
func training(inference, m plan.Memory) float64 {
	return m.Adapter + inference.Programs + m.Programs + max(inference.Work, m.Work)
}

// of returns the lengths for a model: those of --lengths, or usual ones within its context.
func (p memoryPlan) of(c *model.Config) []int {
	if p.lengths != nil {
		return p.lengths
	}
	if c.MaxPositions < 2048 {
		return []int{c.MaxPositions}
	}
	return []int{512, 2048}
}
