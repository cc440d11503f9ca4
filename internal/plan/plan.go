// Package plan says what sampling from a base model and training it take of the memory of a device, and chooses sizes
// with which they fit. It computes with the shape of the model alone: nothing is compiled and no device is opened, so
// that many sizes can be tried. What compiles graphs for exact numbers is in packages engine and trainer.
//
// On the device are, for a base model:
//
//	weights     of the base model
//	cache       what layers remember of the tokens of all sequences
//	work        activations of the tokens that are computed at once, of the largest round or of micro-batches
//	copies      of what is trained: parameters, moments, gradients
//	programs    compiled graphs that are kept
//
// Which tokens are computed at once is decided here too, as it decides the work: [Sampling.Shapes] has the shapes of
// rounds, [Sizes] and [Padding] those of micro-batches. A [Device] adds up what is promised to its base models.
//
// What depends on the kind of a model stands once: [WeightBytes], rememberedBytes and activationsOf.
package plan

import (
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/model"
)

// ProcessBytes is the memory of a process besides tensors and compiled graphs: the program, a tokenizer, and garbage
// that has not been collected yet, as internal/dev/bench/memory measures it.
const ProcessBytes = 128 << 20

// Memory is what sampling or training takes, in bytes: float64, as the sizes of a configuration may multiply to more
// than an int64 holds.
type Memory struct {
	// Of sampling: the weights, and keys and values.
	Weights float64 `json:"weights,omitempty"`
	Cache   float64 `json:"cache,omitempty"`
	// Adapter are, of training, the copies of what is trained: old and new state with moments, on the device, gradients,
	// kept outputs.
	Adapter float64 `json:"adapter,omitempty"`
	// Work is that of the largest round and of copying a block of the cache, or of the micro-batches that are computed at
	// once.
	Work float64 `json:"work"`
	// Programs are the compiled graphs that are kept, at most.
	Programs float64 `json:"programs"`
}

// WeightBytes is the size of the weights on a device, with matrices of a type: see [model.Weights.ParamsAs].
func WeightBytes(c *model.Config, matrices dtypes.DType) (bytes float64) {
	for _, s := range c.Specs() {
		size := float64(dtypes.Float32.Size())
		if len(s.Shape) == 2 {
			if matrices == dtypes.Int8 {
				bytes += size * float64(s.Shape[0]) // a scale for each row
			}
			size = float64(matrices.Size())
		}
		for _, d := range s.Shape {
			size *= float64(d)
		}
		bytes += size
	}
	return bytes
}

// rememberedBytes is what a layer keeps of a token for those after it: keys and values, in numbers of a type.
func rememberedBytes(c *model.Config, of dtypes.DType) float64 {
	return 2 * float64(c.NumKVHeads) * float64(c.HeadDim) * float64(of.Size())
}

// activations count the numbers that a layer computes of a token.
type activations struct {
	forward  float64 // of a forward pass, at once
	gradient float64 // kept for the gradient
	dora     float64 // kept besides with DoRA: outputs before they are scaled
	again    float64 // where the layer is computed again for its gradient, besides those kept for it
}

// activationsOf counts for hidden size H, Q query heads and K KV heads of size E, an MLP of size I, and X experts of
// which a token has k, of size J.
func activationsOf(c *model.Config, mlp int) activations {
	h, q, kv := float64(c.HiddenSize), float64(c.NumHeads)*float64(c.HeadDim), float64(c.NumKVHeads)*float64(c.HeadDim)
	i := float64(mlp)
	experts := float64(c.ExpertsPerToken) * (2*h + 4*float64(c.MoEIntermediateSize))
	parts := 0.0
	if c.Fused() {
		parts = q + 2*kv + i
	}
	return activations{
		forward:  4*h + 2*q + 4*kv + 4*i + 8*float64(c.NumExperts) + experts + parts,
		gradient: 8*h + 8*q + 3*i,
		dora:     2*h + 3*q + 2*i,
		again:    i,
	}
}
