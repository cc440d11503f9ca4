package trainer

import (
	"cmp"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// EstimateMemory bounds from above what [Plan] returns for an adapter without the output head, in bytes, from sizes
// alone: it compiles nothing. programs are those that are kept by default, see [Options]. params is the number of the
// adapter's parameters, length the tokens of a sequence; MicroTokens of zero are those of [Options]. For L layers, Q
// heads of size E, hidden size H, MLP of I (of all experts, which are all computed), vocabulary V, and n = rows ·
// length tokens of a micro-batch:
//
//	adapter = 11 · 4·params + min(5 · 4·params, 128 MiB)                see adapterCopies, keptCopies
//	work    = max(Workers · pass(n), pass(shared))     shared = max(3 · MicroTokens, 2 · length): see [Sizes.shared]
//	pass(n) = 4·(n·L·(8H + 8QE + 3I) + 3·kept + n·length/2 + 512·V + params)
//
// on is the profile of the device: one with memory of its own holds 5 of the 11 copies. The gradient of attention has
// kept of n·length·Q scores at a time, see [model.KeptScores], and two lists like them; three where scores are
// soft-capped. A mask takes a byte for each query and key. With layers that are computed again, one layer has what its
// gradient needs and makes, and the others n·H each:
//
//	pass(n) = 4·(n·L·H + 1.15·n·(8H + 8QE + 4I) + 3·kept + n·length/2 + 512·V + params)
//
// DoRA, which is not counted here, keeps the outputs of layers before they are scaled: 2H + 3QE + 2I for each token and
// layer.
func EstimateMemory(
	c *model.Config, params float64, s Sizes, length int, on graphx.Profile,
) (adapter, work, programs float64) {
	if s.MicroTokens <= 0 {
		s.MicroTokens = microTokens(c)
	}
	work = estimate{config: c, params: params, shares: true, fused: on.FusedAttention}.work(s, length)
	return adapterBytes(on, 4*params), work, float64(programBytes(c))
}

// EstimateFull is [EstimateMemory] of a training of all weights: copies, work and programs together.
func EstimateFull(c *model.Config, s Sizes, length int, on graphx.Profile) float64 {
	if s.MicroTokens <= 0 {
		s.MicroTokens = microTokens(c)
	}
	n := numParams(c)
	work := estimate{config: c, params: n, shares: true, head: true, fused: on.FusedAttention}.work(s, length)
	return copiesOf(on, fullCopies, fullOnDevice)*4*n + work + float64(programBytes(c))
}

// EstimateOn is [EstimateMemory] of a training of adapters of a layout, nil for all weights, with what DoRA and a
// trained output head take, on a device of a profile. Workers of zero are those of [Options]. Where the device takes
// long to compile, sequences are padded as with [Options].FewShapes, and Programs is 0: it does not say what they take.
func EstimateOn(c *model.Config, layout *lora.Adapter, s Sizes, length int, on graphx.Profile) Memory {
	s.Workers, s.MicroTokens = cmp.Or(s.Workers, on.RunsAtOnce()), cmp.Or(s.MicroTokens, microTokens(c))
	m := Memory{Programs: programBytes(c)}
	if on.SlowCompile {
		m.Programs, length = 0, powerLength(length)
	}
	target, copies := FullTarget(c), copiesOf(on, fullCopies, fullOnDevice)*4*numParams(c)
	if layout != nil {
		target = AdapterTarget(c, params(c), layout)
		copies = adapterBytes(on, 4*target.numParams)
		for _, norm := range layout.NormShapes() {
			m.Adapter += normCopies * norm.ByteSize()
		}
	}
	m.Adapter += int64(copies)
	m.Work = int64(target.estimate(on).work(s, length))
	return m
}

// estimate is that of a target on a device, where what sequences have in common is computed once.
func (t *Target) estimate(on graphx.Profile) estimate {
	return estimate{
		config: t.config, params: t.numParams, shares: true, head: t.head, fused: on.FusedAttention, dora: t.dora != nil,
	}
}

// estimate computes what [EstimateMemory] documents, for other sizes too.
type estimate struct {
	config *model.Config
	params float64
	shares bool // what sequences have in common is computed once
	head   bool // the head is trained or has an adapter: each trained token has its logits, and lists like them
	fused  bool // the device fuses attention
	dora   bool // the adapter has magnitudes
}

// headLists are the logits of each trained token and lists like them, for the logprob and the entropy.
const headLists = 6

// work is that of the micro-batches that are computed at once.
func (e estimate) work(s Sizes, length int) float64 {
	most := float64(s.Workers) * e.pass(s, fullLayout(length, s.MicroTokens).Tokens(), length)
	if l, ok := sharedLayout(length, s); ok && e.shares {
		most = max(most, e.pass(s, max(l.Tokens(), s.shared(length)), length))
	}
	return most
}

// pass is pass(n).
func (e estimate) pass(s Sizes, n, length int) float64 {
	c := e.config
	l, q := float64(c.NumLayers), float64(c.NumHeads)
	inner := float64(max(c.IntermediateSize, c.NumExperts*c.MoEIntermediateSize))
	token := 8*float64(c.HiddenSize) + 8*q*float64(c.HeadDim) + 3*inner
	if e.dora {
		token += 2*float64(c.HiddenSize) + 3*q*float64(c.HeadDim) + 2*inner
	}
	const masks = 0.5 // bytes take a quarter
	lists := 3.0
	if c.AttentionSoftCap != 0 {
		lists++
	}
	keys := padLength(length)
	scores := lists*float64(model.KeptScores(n*keys*c.NumHeads, e.fused)) + masks*float64(n)*float64(keys)
	each := l * token
	if s.Recompute {
		each = l*float64(c.HiddenSize) + 1.15*(token+inner)
	}
	logits := 512.0
	if e.head {
		logits += headLists * float64(n)
	}
	return 4 * (float64(n)*each + scores + logits*float64(c.VocabSize) + e.params)
}
