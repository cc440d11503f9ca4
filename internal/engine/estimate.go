package engine

import (
	"cmp"
	"math"

	"github.com/gomlx/compute/dtypes"
)

// Estimate is what an engine takes on the device besides the weights, in bytes: float64, as the sizes of a
// configuration may multiply to more than an int64 holds.
type Estimate struct {
	Cache float64 // keys and values
	Work  float64 // of the largest round, and of copying a block
	// Programs are the compiled graphs that are kept, at most.
	Programs float64
}

// EstimateMemory returns an upper bound of what [Plan] and a run take, from sizes alone: it compiles nothing, so that
// many numbers of slots and tokens can be tried. fused says that the device has fused attention and updates the cache
// in place, as the CPU device does. opts needs Config, and of the others Slots, Context and CacheTokens may have their
// defaults. In bytes, for L layers, W slots, P blocks of 32 tokens, K KV heads of size E, Q query heads, hidden size H,
// MLP size I, X experts, vocabulary V, N = max(W, 256) tokens of a round, windows of up to M tokens, G graphs and R
// kinds of RoPE tables:
//
//	Cache    = 4 · 2·L·K·P·32·E
//	Work     = 4 · (N·(4H + 2QE + 4KE + 4I + 8X) + 2·N·M + 4·W·V + R·2·M·E) + 4·Cache/P
//	Programs = min(2·G · (L·96 KB + 128 KB), 256 MiB)
//
// A cache in bfloat16 takes half. A device that is not fused takes 3·Cache (old, new, and what a loop carries), and
// gathers the keys and values of a layer: 4 · (2·N·Q·M + 4·W·K·M·E) more Work. Where it takes long to compile, a round
// has N = 256·W tokens. Programs are not counted there.
func EstimateMemory(opts Options, fused bool) Estimate {
	c := opts.Config
	opts.Slots, opts.Context = cmp.Or(opts.Slots, DefaultSlots), cmp.Or(opts.Context, c.MaxPositions)
	w, e, all := float64(opts.Slots), float64(c.HeadDim), windows(opts)
	blocks := 1 + math.Ceil(cmp.Or(float64(opts.CacheTokens), w*float64(opts.Context))/BlockTokens)
	q, kv, most := float64(c.NumHeads), float64(c.NumKVHeads)*e, float64(all.Largest())
	round := max(w, float64(widths(opts).Largest()))
	if opts.FewShapes {
		round *= w
	}
	inner := float64(max(c.IntermediateSize, c.MoEIntermediateSize))
	token := 4*float64(c.HiddenSize) + 2*q*e + 4*kv + 4*inner + 8*float64(c.NumExperts)
	block := 4 * 2 * float64(c.NumLayers) * kv * BlockTokens
	if opts.CacheType == dtypes.BFloat16 {
		block /= 2
	}
	m := Estimate{Cache: block * blocks}
	m.Work = 4*block + 4*(round*token+2*round*most+4*w*float64(c.VocabSize)+ropeTables(opts))
	if fused {
		m.Programs = float64(programBytes(opts))
	} else {
		m.Cache *= 3
		m.Work += 4 * (2*round*q*most + 4*w*kv*most)
	}
	return m
}

// ropeTables returns the numbers of the RoPE tables, at most.
func ropeTables(opts Options) float64 {
	kinds := 1.0
	if opts.Config.RopeLocalTheta != 0 {
		kinds = 2
	}
	return kinds * 2 * float64(positions(opts)) * float64(opts.Config.HeadDim)
}

// mostProgramBytes is enough for a hundred graphs of a model of 24 layers. One compiles again in a fifth of a second.
const mostProgramBytes = 256 << 20

// programBytes is what compiled graphs may take that are kept: all of the base model and of the adapters of one layout,
// or as many as mostProgramBytes has room for.
func programBytes(opts Options) int64 {
	if opts.ProgramBytes > 0 {
		return opts.ProgramBytes
	}
	return int64(min(2*float64(len(roundShapes(opts))*len(windows(opts)))*largestProgram(opts), mostProgramBytes))
}

// largestProgram is about what a compiled graph of the CPU device takes, at most: some 20 steps for each layer, with
// their kernels, and constants.
func largestProgram(opts Options) float64 {
	return float64(opts.Config.NumLayers)*96e3 + 128e3
}
