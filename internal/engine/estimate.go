package engine

import (
	"math/bits"

	"github.com/goart-dev/art/model"
)

// Estimate is what an engine takes on the device besides the weights, in bytes: float64, as the sizes of a
// configuration may multiply to more than an int64 holds.
type Estimate struct {
	Cache float64 // keys and values of all slots
	Work  float64 // of the largest round, of copying a prefix, and constants of the compiled graphs
}

// EstimateMemory returns an upper bound of what [Plan] and a run take, from sizes alone: it compiles nothing, so that
// many numbers of slots and tokens can be tried. fused says that the device has fused attention and updates the cache
// in place, as the CPU device does. opts needs Config, Slots and Context. In bytes, for L layers, W slots of S tokens,
// K KV heads of size E, Q query heads, hidden size H, MLP size I, X experts, vocabulary V, T = min(S, 256) tokens of a
// round, G graphs and R kinds of RoPE tables:
//
//	Cache = 4 · 2·L·W·K·S·E
//	Work  = 2·Cache/W + 4·(W·T·(4H + 2QE + 4KE + 4I + 8X) + 2·W·T·S + 4·W·V + G·R·2·S·E)
//
// A device that is not fused takes 3·Cache (old, new and carried by a loop) and 4 · 2·W·Q·T·S more Work.
func EstimateMemory(opts Options, fused bool) Estimate {
	c := opts.Config
	w, s, e := float64(opts.Slots), float64(opts.Context), float64(c.HeadDim)
	q, kv := float64(c.NumHeads), float64(c.NumKVHeads)*e
	round := w * min(s, maxWidth)
	inner := float64(max(c.IntermediateSize, c.MoEIntermediateSize))
	token := 4*float64(c.HiddenSize) + 2*q*e + 4*kv + 4*inner + 8*float64(c.NumExperts)
	m := Estimate{Cache: 4 * 2 * float64(c.NumLayers) * w * kv * s}
	m.Work = 2*m.Cache/w + 4*(round*token+2*round*s+4*w*float64(c.VocabSize)+graphs(opts)*ropeKinds(c)*2*s*e)
	if !fused {
		m.Cache *= 3
		m.Work += 4 * 2 * round * q * s
	}
	return m
}

// graphs returns how many graphs serve adapters of one layout.
func graphs(opts Options) float64 {
	rows := 1
	if !opts.FewShapes {
		rows += bits.Len(uint(opts.Slots - 1)) // see heights
	}
	return float64(len(widths(opts.Context)) * rows)
}

// ropeKinds returns how many kinds of RoPE tables the layers have at most.
func ropeKinds(c *model.Config) float64 {
	if c.RopeLocalTheta != 0 {
		return 2
	}
	return 1
}
