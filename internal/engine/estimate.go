package engine

import (
	"cmp"
	"math"
	"math/bits"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/model"
)

// Estimate is what an engine takes on the device besides the weights, in bytes: float64, as the sizes of a
// configuration may multiply to more than an int64 holds.
type Estimate struct {
	Cache float64 // keys and values
	Work  float64 // of the largest round, of copying a block, and constants of the compiled graphs
}

// EstimateMemory returns an upper bound of what [Plan] and a run take, from sizes alone: it compiles nothing, so that
// many numbers of slots and tokens can be tried. fused says that the device has fused attention and updates the cache
// in place, as the CPU device does. opts needs Config, and of the others Slots, Context and CacheTokens may have their
// defaults. In bytes, for L layers, W slots, P blocks of 32 tokens, K KV heads of size E, Q query heads, hidden size H,
// MLP size I, X experts, vocabulary V, N = max(W, 256) tokens of a round, windows of S tokens, the largest of M, G
// graphs for each of them and R kinds of RoPE tables:
//
//	Cache = 4 · 2·L·K·P·32·E
//	Work  = 4 · (N·(4H + 2QE + 4KE + 4I + 8X) + 2·N·M + 4·W·V + G·R·2·E·sum(S)) + 4·Cache/P
//
// A cache in bfloat16 takes half. A device that is not fused takes 3·Cache (old, new, and what a loop carries), and
// gathers the keys and values of a layer: 4 · (2·N·Q·M + 4·W·K·M·E) more Work. Where it takes long to compile, a round
// has N = 256·W tokens, and 256 is one more of S.
func EstimateMemory(opts Options, fused bool) Estimate {
	c := opts.Config
	opts.Slots, opts.Context = cmp.Or(opts.Slots, DefaultSlots), cmp.Or(opts.Context, c.MaxPositions)
	w, e, all := float64(opts.Slots), float64(c.HeadDim), windows(opts)
	blocks := 1 + math.Ceil(cmp.Or(float64(opts.CacheTokens), w*float64(opts.Context))/BlockTokens)
	q, kv, most := float64(c.NumHeads), float64(c.NumKVHeads)*e, float64(all.Largest())
	round := max(w, float64(widths(opts).Largest()))
	tables := 0.0
	if opts.FewShapes {
		round *= w
		tables = graphs(opts) * ropeKinds(c) * 2 * maxWidth * e // of prompts from their beginning
	}
	for _, s := range all {
		tables += graphs(opts) * ropeKinds(c) * 2 * float64(s) * e
	}
	inner := float64(max(c.IntermediateSize, c.MoEIntermediateSize))
	token := 4*float64(c.HiddenSize) + 2*q*e + 4*kv + 4*inner + 8*float64(c.NumExperts)
	block := 4 * 2 * float64(c.NumLayers) * kv * BlockTokens
	if opts.CacheType == dtypes.BFloat16 {
		block /= 2
	}
	m := Estimate{Cache: block * blocks}
	m.Work = 4*block + 4*(round*token+2*round*most+4*w*float64(c.VocabSize)+tables)
	if !fused {
		m.Cache *= 3
		m.Work += 4 * (2*round*q*most + 4*w*kv*most)
	}
	return m
}

// graphs returns how many graphs of one window serve adapters of one layout.
func graphs(opts Options) float64 {
	rows := 1 + bits.Len(uint(opts.Slots-1)) // see heights
	if opts.FewShapes {
		rows = 1 + (bits.Len(uint(opts.Slots-1)/4)+2)/3
	}
	return float64(len(widths(opts)) * rows)
}

// ropeKinds returns how many kinds of RoPE tables the layers have at most.
func ropeKinds(c *model.Config) float64 {
	if c.RopeLocalTheta != 0 {
		return 2
	}
	return 1
}
