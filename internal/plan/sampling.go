package plan

import (
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/internal/engine/schedule"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/model"
)

const (
	// DefaultSlots is the number of requests that run at once by default.
	DefaultSlots = 32
	// BlockTokens is the number of tokens of a block of the KV cache. A device reads blocks that follow one another as
	// one, so they can be small: what sequences do not share, and what they do not use of their last block, is less than
	// one each.
	BlockTokens = 32

	// maxWidth limits the tokens of a prompt that one round computes: a longer prompt takes several rounds.
	maxWidth = 256
	// mostRoundPrograms is enough for a hundred graphs of a model of 24 layers. One compiles again in a fifth of a second.
	mostRoundPrograms = 256 << 20
)

// Sampling describes an engine on a device of a profile. See the options of package engine for the sizes. Where
// On.SlowCompile is set, rounds are padded more, with tokens and with slots.
type Sampling struct {
	Config *model.Config
	On     graphx.Profile

	Slots, Context, CacheTokens int

	Matrices, CacheType dtypes.DType // of the weights, and of keys and values
	WeightBytes         float64      // of the weights; 0: what Matrices makes of them
}

func (s Sampling) weights() float64 {
	if s.WeightBytes > 0 {
		return s.WeightBytes
	}
	return WeightBytes(s.Config, s.Matrices)
}

// Memory is an upper bound of what an engine takes, but for the weights and the cache, which are exact. For L layers, W
// slots, P blocks of 32 tokens, K KV heads of size E, Q query heads, hidden size H, MLP size I, X experts of size J of
// which a token has k, vocabulary V, N = max(W, 256) tokens of a round, windows of up to M tokens, G graphs and R kinds
// of RoPE tables, with a cache in float32:
//
//	Cache    = 4 · 2·L·K·P·32·E
//	Work     = 4 · (N·(4H + 2QE + 4KE + 4I + 8X + k·(2H + 4J)) + 2·N·M + 4·W·V + R·2·M·E) + 4·Cache/P
//	Programs = min(2·G · (L·96 KB + 128 KB), 256 MiB)
//
// Of fused projections the parts, QE + 2KE + I, are there twice. A device without fused attention, which the CPU device
// has, does not update the cache in place. It takes 3·Cache (old, new, and what a loop carries), and gathers the keys
// and values of a layer: 4 · (2·N·Q·M + 4·W·K·M·E) more Work.
// Where it takes long to compile, a round has N = 256·W tokens. Programs are not counted there.
func (s Sampling) Memory() Memory {
	m := s.withoutWeights()
	m.Weights = s.weights()
	return m
}

func (s Sampling) withoutWeights() (m Memory) {
	c, shapes := s.Config, s.Shapes()
	w, e, most := float64(s.Slots), float64(c.HeadDim), float64(shapes.Windows.Largest())
	round := max(w, float64(shapes.Widths.Largest()))
	if s.On.SlowCompile {
		round *= w
	}
	token := activationsOf(c, max(c.IntermediateSize, c.MoEIntermediateSize)).forward
	kinds := 1.0
	if c.RopeLocalTheta != 0 {
		kinds = 2
	}
	tables := kinds * 2 * float64(shapes.Positions) * e
	block := float64(c.NumLayers) * BlockTokens * rememberedBytes(c, s.CacheType)
	m.Cache = block * float64(shapes.Blocks)
	m.Work = 4*block + 4*(round*token+2*round*most+4*w*float64(c.VocabSize)+tables)
	if s.On.FusedAttention {
		m.Programs = min(2*float64(len(shapes.Rounds)*len(shapes.Windows))*roundProgram(c), mostRoundPrograms)
	} else {
		m.Cache *= 3
		m.Work += 4 * (2*round*float64(c.NumHeads)*most + 4*w*float64(c.NumKVHeads)*e*most)
	}
	return m
}

// roundProgram is about what a compiled graph of the CPU device takes, at most: some 20 steps for each layer, with
// their kernels, and constants.
func roundProgram(c *model.Config) float64 { return float64(c.NumLayers)*96e3 + 128e3 }

// Shapes are the sizes that the graphs of an engine are compiled for, in ascending order.
type Shapes struct {
	// Widths are numbers of tokens of a row of a round: 1, 4, 8, 12, 16, 24, 32, 48, 64, 96, ...; or 1, 16, 64 and 256 on
	// devices that take long to compile.
	Widths schedule.Sizes
	// Heights are numbers of rows: powers of two, or of eight on devices that take long to compile, and the slots.
	Heights schedule.Sizes
	// Windows are numbers of cached tokens, which are whole blocks: 512, four times as many each time, and the context. On
	// devices that take long to compile, too: the keys and values of 64 rows of 2,048 tokens take as long to copy as a
	// fourth of the round's matmuls.
	Windows schedule.Sizes
	// DecodeWindows are those of decoding: 128, twice as many each time, and the context. A call of many tokens copies a
	// window once, and reads it for each token.
	DecodeWindows schedule.Sizes
	// Rounds are the rows and widths that occur together: many rows are short ones, for there is a budget of tokens.
	Rounds []Round
	// Budget is the number of tokens that a round computes of prompts.
	Budget int
	// Blocks is the number of blocks of the cache, with the one that is not used.
	Blocks int
	// Positions is the number of positions that the tokens of any graph may have.
	Positions int
}

// Round is the shape of the tokens of a round.
type Round struct{ Rows, Width int }

// Shapes returns the sizes for which graphs are compiled.
func (s Sampling) Shapes() Shapes {
	out := Shapes{
		Widths: schedule.Sizes{1, 16, 64, maxWidth}, Budget: maxWidth, Blocks: 1 + s.CacheTokens/BlockTokens,
		Windows: windows(512, s.Context, 4), DecodeWindows: windows(128, s.Context, 2),
	}
	if s.CacheTokens%BlockTokens > 0 {
		out.Blocks++
	}
	factor := 8
	if s.On.SlowCompile {
		out.Budget *= 2 * s.Slots // it may compute all rows anyway
	} else {
		factor, out.Widths = 2, schedule.Sizes{1, 4}
		for w := 8; w <= maxWidth; w *= 2 {
			out.Widths = append(out.Widths, w, w+w/2)
		}
	}
	for len(out.Widths) > 1 && out.Widths.Largest() > min(s.Context, maxWidth) {
		out.Widths = out.Widths[:len(out.Widths)-1]
	}
	for n := 1; n > 0 && n < (s.Slots+factor/2-1)/(factor/2); n *= factor {
		out.Heights = append(out.Heights, n)
	}
	out.Heights = append(out.Heights, s.Slots)
	fewest := 1 // rows of a round that has this height
	for _, rows := range out.Heights {
		for _, width := range out.Widths {
			if fewest == 1 || width == 1 || fewest*width <= out.Budget {
				out.Rounds = append(out.Rounds, Round{rows, width})
			}
		}
		fewest = rows + 1
	}
	out.Positions = max(out.Windows.Largest(), out.DecodeWindows.Largest(), out.Widths.Largest())
	return out
}

// windows returns windows up to three quarters of the context, and the context.
func windows(n, context, factor int) (out schedule.Sizes) {
	for ; 4*n <= 3*context; n *= factor {
		out = append(out, n)
	}
	return append(out, (context+BlockTokens-1)/BlockTokens*BlockTokens)
}
