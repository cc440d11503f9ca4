// Package trainbench measures training steps of models of random weights: groups of answers to common prompts, computed
// with their prompts shared and each sequence alone. The verb bench train of the command art prints its results.
package trainbench

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// shapes of models by name.
var shapes = map[string]model.Config{
	"small": {
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 1024, HiddenSize: 128, IntermediateSize: 384,
		NumLayers: 4, NumHeads: 4, NumKVHeads: 2, HeadDim: 32, MaxPositions: 8192, RMSNormEps: 1e-6, RopeTheta: 1e6,
		TieEmbeddings: true,
	},
	"smollm2-135m": {
		ModelType: "llama", HiddenAct: "silu", VocabSize: 49152, HiddenSize: 576, IntermediateSize: 1536,
		NumLayers: 30, NumHeads: 9, NumKVHeads: 3, HeadDim: 64, MaxPositions: 8192, RMSNormEps: 1e-5, RopeTheta: 1e5,
		TieEmbeddings: true,
	},
	"qwen3-0.6b": {
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 151936, HiddenSize: 1024, IntermediateSize: 3072,
		NumLayers: 28, NumHeads: 16, NumKVHeads: 8, HeadDim: 128, MaxPositions: 40960, RMSNormEps: 1e-6, RopeTheta: 1e6,
		TieEmbeddings: true,
	},
}

// Shapes lists the names of shapes.
func Shapes() []string { return slices.Sorted(maps.Keys(shapes)) }

// Config describes what is measured.
type Config struct {
	Shape  string // one of Shapes
	Groups int    // in a step
	Size   int    // answers of a group
	Prompt int    // tokens that the answers of a group share; 0 is none
	Answer int    // tokens of an answer, all of which are trained on
	// Conversation makes the answers of a group the turns of a conversation: each follows the prompt and all turns before
	// it, which are trained on in sequences of their own.
	Conversation bool
	Rank         int // of the adapter
	// Weights is the type of matrices: float32, which "" is too, or bfloat16.
	Weights string
	Runs    int // pairs of measurements, after one that does not count
	// Cold counts the first steps too, which compile: for steps of minutes.
	Cold bool
	// Recompute computes layers again for their gradient, in both ways.
	Recompute bool
	// OnlyShared leaves out sequences one by one.
	OnlyShared bool
}

// ways are the two kinds of steps: sequences alone or not.
func (c Config) ways() []bool {
	if c.OnlyShared {
		return []bool{false}
	}
	return []bool{false, true}
}

// Side is one way to compute a step.
type Side struct {
	Seconds  []float64 `json:"seconds"`  // of each run
	CPU      []float64 `json:"cpu_s"`    // processor time of each run, of all cores; 0 where it is not known
	Median   float64   `json:"median"`   // of Seconds
	Computed int       `json:"computed"` // tokens of a step, padding included
	Rate     float64   `json:"tokens_per_s"`
	// Recompute is set where layers were computed again for their gradient: on request, or for want of memory.
	Recompute bool `json:"recompute"`
}

// Result is what was measured.
type Result struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"` // of all sequences
	Shared Side   `json:"shared"`
	Alone  Side   `json:"alone"` // empty with OnlyShared
	// Speedup is the median ratio of a pair of runs, alone over shared, and CPUSpeedup that of their processor time, which
	// other programs disturb less. Ideal is that of the tokens: those of all sequences over those that differ.
	Speedup    float64 `json:"speedup"`
	CPUSpeedup float64 `json:"cpu_speedup"`
	Ideal      float64 `json:"ideal"`
	// WorkBytes is the memory for intermediate results of the CPU device, of the larger way; 0 for others.
	WorkBytes int64 `json:"work_bytes"`
}

// Measure alternates steps of both kinds. The weights are random.
func Measure(ctx context.Context, device compute.Backend, c Config) (*Result, error) {
	shape, ok := shapes[c.Shape]
	if !ok || c.Groups < 1 || c.Size < 1 || c.Prompt < 0 || c.Answer < 2 || c.Rank < 1 || c.Runs < 1 {
		return nil, fmt.Errorf("trainbench: %+v: want a shape of %q and positive numbers", c, Shapes())
	}
	weights, err := model.Random(&shape, 1)
	if err != nil {
		return nil, err
	}
	matrices, err := c.matrices()
	if err != nil {
		return nil, err
	}
	params, err := weights.ParamsAs(device, matrices)
	if err != nil {
		return nil, err
	}
	weights = nil // free before memory is planned
	debug.FreeOSMemory()
	var layers []lora.LayerShape
	for _, l := range shape.Linears() {
		layers = append(layers, lora.LayerShape(l))
	}
	adapter, err := lora.New(lora.Config{Rank: c.Rank}, layers, 1)
	if err != nil {
		return nil, err
	}
	batch := c.batch(shape.VocabSize)
	sides := map[bool]*trainer.Trainer{}
	for _, alone := range c.ways() {
		sides[alone] = trainer.New(trainer.AdapterTarget(&shape, params, adapter),
			trainer.Options{Device: device, Alone: alone, Recompute: c.Recompute})
		if err := c.fit(sides[alone]); err != nil {
			return nil, err
		}
	}
	state, again := trainer.AdapterState(adapter), map[bool]bool{} // see Side.Recompute
	r, err := c.alternate(func(alone bool) (int, error) {
		_, report, err := sides[alone].Train(ctx, state, batch, trainer.Run{
			Loss: grpo.PolicyLoss{}, Optimizer: grpo.DefaultAdamW(), Rate: func(int) float64 { return 1e-5 }, Epochs: 1,
			MiniBatches: 1,
		})
		if err != nil {
			return 0, err
		}
		again[alone] = report.Recomputed > 0
		return report.Computed, nil
	})
	if err != nil {
		return nil, err
	}
	r.WorkBytes = graphx.HeldBytes(device)
	r.Shared.Recompute, r.Alone.Recompute = again[false], again[true]
	return r, nil
}

// matrices is the type for Weights.
func (c Config) matrices() (dtypes.DType, error) {
	switch c.Weights {
	case "", "float32":
		return dtypes.Float32, nil
	case "bfloat16":
		return dtypes.BFloat16, nil
	}
	return dtypes.InvalidDType, fmt.Errorf("trainbench: weights %q: want float32 or bfloat16", c.Weights)
}

// longest is the number of tokens of the longest sequence.
func (c Config) longest() int {
	if c.Conversation {
		return c.Prompt + c.Size*c.Answer
	}
	return c.Prompt + c.Answer
}

// fit chooses sizes for the free memory, as backend/local does.
func (c Config) fit(t *trainer.Trainer) error {
	free, known := machine.Free(os.DirFS("/"))
	if !known {
		return nil
	}
	if takes, ok := t.Fit(c.longest(), 0.9*float64(free)); !ok {
		return fmt.Errorf("trainbench: a sequence of %d tokens takes %.1f GB, and %.1f are free", c.longest(),
			takes/1e9, float64(free)/1e9)
	}
	return nil
}

// alternate runs steps of both kinds in turn.
func (c Config) alternate(step func(alone bool) (computed int, err error)) (*Result, error) {
	r := &Result{
		Name:   fmt.Sprintf("%s/%dx%d/prompt=%d/answer=%d", c.Shape, c.Groups, c.Size, c.Prompt, c.Answer),
		Tokens: c.Groups * c.Size * (c.Prompt + c.Answer),
	}
	if c.Conversation {
		r.Name += "/conversation"
		r.Tokens += c.Groups * c.Answer * c.Size * (c.Size - 1) / 2
	}
	r.Ideal = float64(r.Tokens) / float64(c.Groups*(c.Prompt+c.Size*c.Answer))
	var ratios, cpuRatios []float64
	warm := 1 // steps that compile
	if c.Cold {
		warm = 0
	}
	for run := range warm + c.Runs {
		for _, alone := range c.ways() {
			side := &r.Shared
			if alone {
				side = &r.Alone
			}
			start, cpu := time.Now(), cpuTime()
			computed, err := step(alone)
			if err != nil {
				return nil, err
			}
			if run >= warm {
				side.Seconds = append(side.Seconds, time.Since(start).Seconds())
				side.CPU = append(side.CPU, (cpuTime() - cpu).Seconds())
				side.Computed = computed
			}
		}
		if at := run - warm; at >= 0 && !c.OnlyShared {
			ratios = append(ratios, r.Alone.Seconds[at]/r.Shared.Seconds[at])
			if cpu := r.Shared.CPU[at]; cpu > 0 {
				cpuRatios = append(cpuRatios, r.Alone.CPU[at]/cpu)
			}
		}
	}
	r.Shared.sum(r.Tokens)
	if !c.OnlyShared {
		r.Alone.sum(r.Tokens)
		r.Speedup = median(ratios)
	}
	if len(cpuRatios) > 0 {
		r.CPUSpeedup = median(cpuRatios)
	}
	return r, nil
}

// sum fills in the median and the rate.
func (s *Side) sum(tokens int) {
	s.Median = median(s.Seconds)
	s.Rate = float64(tokens) / s.Median
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// batch makes groups of random tokens. Without a prompt answers begin with a token of their own.
func (c Config) batch(vocabulary int) []grpo.Sequence {
	rng := rand.New(rand.NewPCG(1, 2))
	ids := func(n int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = int32(rng.IntN(vocabulary))
		}
		return out
	}
	var batch []grpo.Sequence
	for range c.Groups {
		before, trained := ids(c.Prompt), max(1, c.Prompt)
		for i := range c.Size {
			own := ids(c.Answer)
			if i == 0 || !c.Conversation {
				own = append(own, ids(1)...) // the last token is a target only
			}
			s := grpo.Sequence{
				IDs: slices.Concat(before, own), Advantage: float64(1 - 2*(i%2)), Weight: 1, Trajectory: len(batch),
			}
			s.Trained, s.Logprobs = make([]bool, len(s.IDs)), make([]float32, len(s.IDs))
			for j := trained; j < len(s.IDs); j++ {
				s.Trained[j], s.Logprobs[j] = true, -7
			}
			batch = append(batch, s)
			if c.Conversation {
				before, trained = s.IDs, len(s.IDs)
			}
		}
	}
	return batch
}
