package plan

import (
	"iter"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// Training describes what is trained of a model, on a device of a profile. Where On.SlowCompile is set, micro-batches
// are padded more.
type Training struct {
	Config *model.Config
	On     graphx.Profile
	Params float64 // number of what is trained

	Full  bool // all weights are trained
	Head  bool // the output head is trained, or has an adapter: logits of all trained tokens are kept
	DoRA  bool // the adapter has magnitudes
	Alone bool // sequences are computed alone, as if they had nothing in common

	norms float64 // bytes of the norms of DoRA
}

// TrainingOf describes a training of adapters of a layout, nil for all weights. On and Alone are left to the caller.
func TrainingOf(c *model.Config, layout *lora.Adapter) Training {
	if layout == nil {
		return Training{Config: c, Params: WeightBytes(c, dtypes.Float32) / 4, Full: true, Head: true}
	}
	t := Training{Config: c, Params: float64(layout.NumParams()), DoRA: layout.NumNorms() > 0}
	_, t.Head = layout.Layer("lm_head")
	for _, s := range layout.NormShapes() {
		t.norms += float64(s.ByteSize())
	}
	return t
}

// The copies of what is trained, at the end of a run, when there are most.
//
// Of an adapter, on the host: parameters and two moments of the old state and of the new one (6), and the adapter that
// answers requests (1). On the device: the state, which updates overwrite (3), and the last gradient (1). The CPU
// device keeps the memory of 5 more for the outputs of the next step, as measured (internal/dev/bench/memory
// -programs), of mostKept bytes at most. A GPU, which has memory of its own, has of these the state, the gradient and
// the adapter that answers requests.
//
// Of all weights, on the host: parameters and moments of the old state and of the new one (6). On the device: the state
// (3), the last gradient (1), what answers requests and what is going to (2), and one that requests in progress may
// still have (1).
//
// Of the norms of DoRA: the sampler's, and the trainer's.
const (
	adapterCopies, adapterOnDevice = 11, 5
	keptCopies, mostKept           = 5, 128 << 20

	fullCopies, fullOnDevice = 13, 7
	// Those that are not there yet when a training of all weights begins.
	fullMore, fullMoreOnDevice = 8, 5

	normCopies = 2
)

// copies are the bytes of the copies in the memory of the device, norms aside; with more, of those alone that a
// training adds to what is there when it begins, or more.
func (t Training) copies(more bool) float64 {
	bytes := 4 * t.Params
	all, onDevice := fullCopies*bytes, fullOnDevice*bytes
	switch {
	case !t.Full:
		all, onDevice = adapterCopies*bytes+min(keptCopies*bytes, mostKept), adapterOnDevice*bytes
	case more:
		all, onDevice = fullMore*bytes, fullMoreOnDevice*bytes
	}
	if t.On.OwnMemory {
		return onDevice
	}
	return all
}

// Memory bounds from above what a training takes on sequences of length tokens. Zeros of the sizes are defaults, see
// [Training.WithDefaults]. For L layers, Q heads of size E, hidden size H, MLP of I (of all experts, which are all
// computed), vocabulary V, and n = rows · length tokens of a micro-batch, of an adapter of so many parameters:
//
//	Adapter = 11 · 4·params + min(5 · 4·params, 128 MiB)                see adapterCopies
//	Work    = max(Workers · pass(n), pass(shared))     shared = max(3 · MicroTokens, 2 · length)
//	pass(n) = 4·(n·L·(8H + 8QE + 3I) + 3·kept + n·length/2 + 512·V + params)
//
// The gradient of attention has kept of n·length·Q scores at a time, see [model.KeptScores], and two lists like them;
// three where scores are soft-capped. A mask takes a byte for each query and key. With layers that are computed again,
// one layer has what its gradient needs and makes, and the others n·H each:
//
//	pass(n) = 4·(n·L·H + 1.15·n·(8H + 8QE + 4I) + 3·kept + n·length/2 + 512·V + params)
//
// DoRA keeps the outputs of layers before they are scaled: 2H + 3QE + 2I more for each token and layer. Where the
// device takes long to compile, it does not say what programs take: Programs is 0.
func (t Training) Memory(s Sizes, length int) Memory {
	m := Memory{Adapter: t.copies(false) + normCopies*t.norms, Work: t.work(t.WithDefaults(s), t.Padding().Length(length))}
	if !t.On.SlowCompile {
		m.Programs = float64(TrainingPrograms(t.Config))
	}
	return m
}

// WithDefaults sets the defaults of sizes that are zero.
//
// Workers are as many as keep the device busy; on a GPU one. A second would overlap the upload of its inputs, some
// kilobytes of ids, with the computation of the one before: microseconds of hundreds of milliseconds, for which it
// would take the memory of another micro-batch.
//
// MicroTokens are 256 to 4096, as many as have their intermediate values in a gigabyte. They are a function of the
// model alone: results must not depend on the memory of the machine. Attention scores are left out, since a micro-batch
// has few long sequences.
func (t Training) WithDefaults(s Sizes) Sizes {
	const budget = 1 << 30
	if s.Workers <= 0 {
		s.Workers = t.On.RunsAtOnce()
	}
	if s.MicroTokens <= 0 {
		layer := activationsOf(t.Config, t.Config.IntermediateSize)
		token := 4 * float64(t.Config.NumLayers) * (layer.gradient + layer.again)
		s.MicroTokens = int(min(max(256, budget/token), 4096))
	}
	return s
}

// Tokens is the number of tokens of which a micro-batch takes the memory. A head that is trained keeps logits of each
// trained token, and these are more than the tokens that are computed where sequences have most of them in common.
func (t Training) Tokens(l pack.Layout) int {
	if t.Head {
		return max(l.Tokens(), l.Trained)
	}
	return l.Tokens()
}

// Pass is what a micro-batch takes whose layers are not computed again.
func (t Training) Pass(l pack.Layout) float64 {
	length := l.Length
	for _, b := range l.Branches {
		length = max(length, b.Keys)
	}
	return t.pass(t.Tokens(l), length, false)
}

// work is that of the micro-batches that are computed at once.
func (t Training) work(s Sizes, length int) float64 {
	bytes, _ := s.Work(length, t.Alone, func(_ pack.Layout, tokens int) (float64, error) {
		return t.pass(tokens, length, s.Recompute), nil
	})
	return bytes
}

// pass is pass(n) of [Training.Memory].
func (t Training) pass(n, length int, recompute bool) float64 {
	c := t.Config
	layer, layers := activationsOf(c, max(c.IntermediateSize, c.NumExperts*c.MoEIntermediateSize)), float64(c.NumLayers)
	token := layer.gradient
	if t.DoRA {
		token += layer.dora
	}
	const masks = 0.5 // bytes take a quarter
	lists := 3.0
	if c.AttentionSoftCap != 0 {
		lists++
	}
	keys := padLength(length)
	scores := lists*float64(model.KeptScores(n*keys*c.NumHeads, t.On.FusedAttention)) + masks*float64(n)*float64(keys)
	each := layers * token
	if recompute {
		each = layers*float64(c.HiddenSize) + 1.15*(token+layer.again)
	}
	logits := 512.0
	if t.Head {
		const lists = 6 // the logits of each trained token and lists like them, for the logprob and the entropy
		logits += lists * float64(n)
	}
	return 4 * (float64(n)*each + scores + logits*float64(c.VocabSize) + t.Params)
}

// TrainingPrograms is how many bytes of compiled graphs are kept by default, for all trainings of a base model: of 32
// programs of a loss, about, at most 256 MiB. With more, few compilations are saved, since most layouts that occur
// again do so within a step. A program has some hundred steps and their kernels for each layer, and constants.
func TrainingPrograms(c *model.Config) int64 {
	return min(keptPrograms*trainingProgram(c), mostTrainingPrograms)
}

// mostTrainingPrograms is enough for sixteen programs of a model that is as deep as those of the hub are.
const keptPrograms, mostTrainingPrograms = 32, 256 << 20

// trainingProgram is what a program of a loss takes, about.
func trainingProgram(c *model.Config) int64 {
	const layer, other = 896 << 10, 1 << 20
	return int64(c.NumLayers)*layer + other
}

// Limits are what [Training.Fit] may choose from.
type Limits struct {
	Sizes            // where memory is plenty
	FixedTokens bool // MicroTokens and Narrow stay as they are
	Devices     int  // compute micro-batches
	// Programs bounds compiled graphs by a part of the bytes that they may have, and returns how many more they may take
	// than they do.
	Programs func(part float64) (more float64)
}

// programParts are the parts of the programs that there is room for where memory gets shorter; 0 keeps one program.
var programParts = []float64{1, 1.0 / 8, 0}

// Fit chooses sizes with which a training takes no more than so many bytes, for sequences of up to length tokens, and
// returns what it takes by [Training.Memory], without what is there already: the sizes of the limits, if they fit; else
// fewer programs are kept, then fewer micro-batches computed at once, then layers computed again. None of it changes a
// bit of a result. Where that is not enough, and tokens are not fixed, micro-batches are Narrow, and then MicroTokens
// are halved, down to one sequence in a micro-batch: sums of gradients are then added in another order. ok is false
// when nothing fits; the smallest sizes are then returned.
//
// room is what micro-batches may take where layers are computed again for want of memory; else 0.
func (t Training) Fit(most Limits, length int, bytes float64) (s Sizes, room, takes float64, ok bool) {
	length = t.Padding().Length(length)
	copies, devices := t.copies(true), float64(most.Devices)
	if t.On.OwnMemory {
		devices = 1 // bytes are those of each
	}
	for s = range t.smaller(most, length) {
		work := t.work(s, length)
		for _, part := range programParts {
			programs := most.Programs(part)
			if takes = copies + devices*(work+programs); takes > bytes {
				continue
			}
			if s.Recompute && !most.Recompute {
				room = (bytes-copies)/devices - programs
			}
			return s, room, takes, true
		}
	}
	return s, 0, takes, false
}

// smaller yields sizes that take less and less memory.
func (t Training) smaller(most Limits, length int) iter.Seq[Sizes] {
	return func(yield func(Sizes) bool) {
		s, more := most.Sizes, true
		for _, recompute := range []bool{most.Recompute, true} {
			s.Recompute = recompute
			for s.Workers = most.Workers; more && s.Workers > 1; s.Workers /= 2 {
				more = yield(s)
			}
			s.Workers = 1
			more = more && yield(s)
		}
		if most.FixedTokens {
			return
		}
		if s.Narrow = true; more && !t.Alone {
			more = yield(s)
		}
		for more && sharedPieces*s.MicroTokens > padLength(length) {
			s.MicroTokens /= 2
			more = yield(s)
		}
	}
}
