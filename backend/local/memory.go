package local

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"os"
	"runtime/debug"
	"sync"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

const (
	// usable is the fraction of the free memory that may be planned. The rest is for garbage, and for other programs.
	usable = 0.9
	// processBytes is the memory of a process besides tensors: see art model inspect.
	processBytes = 128 << 20
	// unknownFree is assumed to be free beside the weights where the system or the device does not report it.
	unknownFree = 8 << 30
	// mostBytes is more than any machine has. More is an error even where the free memory is not known.
	mostBytes = 1 << 46
	// reservedLength is the length of sequences for which training has memory reserved.
	reservedLength = 1024

	slotTokens   = 2048 // of the cache for each slot, by default
	fewTokens    = 2048 // the context at which slots are lowered first
	leastContext = 256  // the lowest default
)

// demand is the memory of a base model on the device, in bytes.
//
//	least = weights + cache + work + programs + process    for sampling; it must fit
//	all   = least + training                               for which the defaults leave room
//
// with cache and work of [engine.EstimateMemory], and its programs, but at most a sixteenth of what is free. Training
// is that of [trainer.EstimateMemory] for an adapter of the default rank on all layers and sequences of min(context,
// 1024) tokens. Where that lets a larger size fit, layers are computed again; and training has at most half of what
// weights and process leave: where memory is scarce, it is limited to shorter sequences.
type demand struct {
	weights, cache, work, programs, training float64
}

func (d demand) least() float64 { return d.weights + d.cache + d.work + d.programs + processBytes }

func (d demand) all() float64 { return d.least() + d.training }

// memory books the memory of a backend's device for its base models. It is safe for concurrent use.
type memory struct {
	// free is what is free now; of a device with memory of its own, what was when it was opened. Tests replace it.
	free    func() (bytes int64, known bool)
	held    func() int64 // by the device, for its next runs; nil is nothing
	profile graphx.Profile

	workers int // trainer.Options.Workers
	devices int // that share this memory, each with the weights; 0 is one

	mu    sync.Mutex
	first float64 // free before the first base model; 0 when none was planned
	taken float64 // booked by plans, not all of it in use yet
	least float64 // of what is booked, what is not for training
}

// newMemory returns the memory of a device. That of its own is not known, see [Backend.measureGPUs].
func newMemory(profile graphx.Profile) *memory {
	m := &memory{profile: profile, workers: profile.RunsAtOnce()}
	m.free = func() (int64, bool) { return machine.Free(os.DirFS("/")) }
	if profile.OwnMemory {
		m.free = func() (int64, bool) { return 0, false }
	}
	return m
}

// shares is the number of devices that share the memory.
func (m *memory) shares() float64 { return float64(max(1, m.devices)) }

// room is the memory available to a base model, and whether it is known.
type room struct {
	bytes  float64
	known  bool
	others float64 // booked for other base models
}

// room returns the memory available for planning. What earlier plans booked may not be in use yet, so that the system
// counts it as free.
func (m *memory) room(weights float64) room {
	free, known := m.free()
	if !known {
		return room{weights + unknownFree, false, m.taken}
	}
	bytes := usable * float64(free)
	if m.taken > 0 {
		bytes = min(bytes, m.first-m.taken)
	} else {
		m.first = bytes
	}
	return room{max(0, bytes), true, m.taken}
}

// plan is the number of slots of a base model, the most tokens of a request, and those in the cache.
type plan struct {
	slots, context int
	tokens         int
	recompute      bool // training has room only if it computes layers again
	demand         demand
	booked         float64 // bytes
	room           room
}

// plan chooses slots, context and the tokens of the cache. Zeros in want are defaults: 32 slots, the model's context,
// and a cache of 2048 tokens for each slot, at least the context. What does not fit is lowered: first the cache, down
// to the context, then the room for training to that of layers that are computed again, then the context down to 2048,
// the slots down to 1, and the context down to 256. The plan stays booked until giveBack. Impossible options, and
// those that do not fit, are [art.ErrInvalid].
func (m *memory) plan(c *model.Config, matrices dtypes.DType, want Options) (plan, error) {
	if want.Context > c.MaxPositions || want.Context == 1 {
		err := fmt.Errorf("a context of %d tokens, where the model has 2 to %d", want.Context, c.MaxPositions)
		return plan{}, memoryError(err, "change Context of local.Options")
	}
	if want.CacheTokens != 0 && want.CacheTokens < max(2, want.Context) {
		err := fmt.Errorf("a cache of %d tokens, for requests of up to %d", want.CacheTokens, max(2, want.Context))
		return plan{}, memoryError(err, "raise CacheTokens of local.Options, or lower Context")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := sizing{
		memory: m, config: c, slots: want.Slots, context: want.Context, tokens: want.CacheTokens,
		cache:   cacheTypes[want.CacheType],
		weights: m.shares() * float64(c.WeightBytes(matrices)), params: adapterParams(c.Linears(), lora.DefaultRank),
		training: trainer.Sizes{Workers: m.workers, MicroTokens: want.MicroTokens, Recompute: want.Recompute,
			Narrow: want.MicroTokens > 0},
	}
	p, ok := s.choose(m.room(s.weights))
	if !ok { // garbage may still be counted as used
		debug.FreeOSMemory()
		p, ok = s.choose(m.room(s.weights))
	}
	if !ok {
		return plan{}, p.refuse(m.profile)
	}
	m.taken, m.least = m.taken+p.booked, m.least+p.demand.least()
	return p, nil
}

// giveBack ends the booking of a plan.
func (m *memory) giveBack(p plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken, m.least = m.taken-p.booked, m.least-p.demand.least()
}

// sizing is the choice of slots, context and tokens of the cache for a model; 0 is the default.
type sizing struct {
	*memory
	config          *model.Config
	slots, context  int
	tokens          int
	cache           dtypes.DType
	weights, params float64 // bytes, and parameters of an adapter of the default rank
	training        trainer.Sizes
}

// choose returns the largest plan that fits, or the smallest when none does. If slots and context are both given, no
// room for training is required.
func (s *sizing) choose(r room) (p plan, ok bool) {
	for slots, context := range s.sizes() {
		size := plan{slots: slots, context: context, tokens: cmp.Or(s.tokens, context), room: r}
		for _, size.recompute = range []bool{s.training.Recompute, true} {
			if p = s.plan(size); p.booked <= r.bytes {
				return s.widen(p), true
			}
		}
	}
	// p is the smallest size or the given one. It need not have room for training, and is tried where nothing is known.
	p.booked = math.Ceil(p.demand.least())
	return p, p.booked <= r.bytes || !r.known && p.booked <= mostBytes
}

// plan returns a plan with its demand and what it books.
func (s *sizing) plan(p plan) plan {
	p.demand = s.demand(p)
	if p.booked = p.demand.all(); s.slots != 0 && s.context != 0 {
		p.booked = p.demand.least()
	}
	p.booked = math.Ceil(p.booked) // so that sums of plans are exact
	return p
}

// widen gives the cache of a plan that fits the default number of tokens, or as many as fit.
func (s *sizing) widen(p plan) plan {
	most := max(p.context, slotTokens*min(p.slots, mostBytes))
	if p.context < slotTokens {
		most = p.context * min(p.slots, mostBytes)
	}
	if s.tokens != 0 || most <= p.tokens {
		return p
	}
	double := p
	double.tokens *= 2
	each := (s.demand(double).cache - p.demand.cache) / float64(p.tokens)
	more := min(float64(most-p.tokens), (p.room.bytes-p.booked)/each-2*engine.BlockTokens)
	if more <= 0 {
		return p
	}
	p.tokens += int(more)
	return s.plan(p)
}

// demand returns the demand of a plan.
func (s *sizing) demand(p plan) demand {
	opts := engine.Options{
		Config: s.config, Slots: p.slots, Context: p.context, CacheTokens: p.tokens, CacheType: s.cache,
		FewShapes: s.profile.SlowCompile,
	}
	sampling := engine.EstimateMemory(opts, s.profile.FusedAttention)
	sizes := s.training
	sizes.Recompute = p.recompute
	length := min(p.context, reservedLength)
	adapter, work, programs := trainer.EstimateMemory(s.config, s.params, sizes, length, s.profile)
	n := s.shares()
	return demand{
		weights: s.weights, cache: n * sampling.Cache, work: n * sampling.Work,
		programs: min(n*sampling.Programs, p.room.bytes/16),
		training: min(adapter+n*(work+programs), max(0, p.room.bytes-s.weights-processBytes)/2),
	}
}

// sizes yields slots and context to try, the largest first.
func (s *sizing) sizes() iter.Seq2[int, int] {
	slots, context := cmp.Or(s.slots, engine.DefaultSlots), cmp.Or(s.context, s.config.MaxPositions)
	if s.context == 0 && s.tokens != 0 {
		context = min(context, s.tokens)
	}
	return func(yield func(slots, context int) bool) {
		more := yield(slots, context)
		for more && s.context == 0 && context/2 >= fewTokens {
			context /= 2
			more = yield(slots, context)
		}
		for more && s.slots == 0 && slots > 1 {
			slots /= 2
			more = yield(slots, context)
		}
		for more && s.context == 0 && context/2 >= leastContext {
			context /= 2
			more = yield(slots, context)
		}
	}
}

// refuse returns the error of a plan that does not fit.
func (p plan) refuse(on graphx.Profile) error {
	have := fmt.Sprintf("%s are free", gigabytes(p.room.bytes))
	if !p.room.known {
		have = "that is more than any machine has"
	}
	if p.room.others > 0 {
		have += fmt.Sprintf(", and %s are planned for other base models", gigabytes(p.room.others))
	}
	d := p.demand
	err := fmt.Errorf("%s, a context of %d and a cache of %d tokens take %s of memory, with %s for the weights and "+
		"%s for keys and values; %s",
		quantity.Of(p.slots, "slot"), p.context, p.tokens, gigabytes(d.least()), gigabytes(d.weights), gigabytes(d.cache),
		have)
	hint := "lower Slots, Context and CacheTokens of local.Options, use Weights \"bfloat16\", or a machine with more " +
		"memory"
	if on.OwnMemory {
		hint += "; XLA takes three quarters of a GPU: memory_fraction=0.95 behind the name of the device gives more"
	}
	return memoryError(err, hint)
}

func memoryError(err error, hint string) error {
	return &art.Error{Op: "register", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err), Hint: hint}
}

// gigabytes formats a size.
func gigabytes(bytes float64) string { return fmt.Sprintf("%.2f GiB", bytes/(1<<30)) }

// adapterParams returns the number of parameters of an adapter on these layers.
func adapterParams(layers []model.LinearShape, rank int) (n float64) {
	for _, l := range layers {
		n += float64(rank) * (float64(l.In) + float64(l.Out))
	}
	return n
}

// checkAdapter refuses an adapter whose copies in training do not fit into free memory.
func (m *memory) checkAdapter(c *model.Config, params float64) error {
	most, known := m.available(usable)
	if !known {
		most = mostBytes
	}
	if takes, _, _ := trainer.EstimateMemory(c, params, trainer.Sizes{}, leastContext, m.profile); takes > most {
		return fmt.Errorf("an adapter of %.0f parameters takes %s in training; %s are free: lower the rank",
			params, gigabytes(takes), gigabytes(most))
	}
	return nil
}
