package main

import (
	"fmt"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// processBytes is what a process takes besides tensors: the program, a tokenizer, compiled graphs, and garbage that has
// not been collected yet. It is measured, by internal/bench/memory.
const processBytes = 128 << 20

// plan is what memory is asked for.
type plan struct {
	lengths              []int
	slots, rank, workers int
}

// memory returns what a model takes at each length.
func (p plan) memory(c *model.Config) ([]lengthMemory, error) {
	device, err := cpu.New(nil)
	if err != nil {
		return nil, err
	}
	defer device.Finalize()
	var layers []lora.LayerShape
	for _, l := range c.Linears() {
		layers = append(layers, lora.LayerShape(l))
	}
	layout, err := lora.New(lora.Config{Rank: p.rank, Alpha: 1}, layers, 0)
	if err != nil {
		return nil, err
	}
	var list []lengthMemory
	for _, length := range p.of(c) {
		if length > c.MaxPositions {
			return list, fmt.Errorf("length %d: the model has a context of %d tokens: give others with --lengths", length,
				c.MaxPositions)
		}
		m := lengthMemory{Length: length, Slots: p.slots, Process: processBytes}
		if m.Inference, err = engine.Plan(engine.Options{Device: device, Config: c, Slots: p.slots, Context: length},
			layout); err != nil {
			return list, err
		}
		if m.Training, err = trainer.Plan(c, layout, length,
			trainer.Options{Device: device, Workers: p.workers}); err != nil {
			return list, err
		}
		held := m.Process + m.Inference.Weights + m.Inference.Cache
		m.Infer = held + m.Inference.Work
		m.Train = held + m.Training.Adapter + max(m.Inference.Work, m.Training.Work) // they share their memory
		list = append(list, m)
	}
	return list, nil
}

// of returns the lengths for a model: those that were asked for, or usual ones that are within its context.
func (p plan) of(c *model.Config) []int {
	if p.lengths != nil {
		return p.lengths
	}
	if c.MaxPositions < 2048 {
		return []int{c.MaxPositions}
	}
	return []int{512, 2048}
}
