package local

import (
	"cmp"
	"fmt"
	"iter"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

const (
	// usable is the part of the free memory that is planned with. The rest is for garbage, and for other programs that
	// grow.
	usable = 0.9
	// processBytes is what a process takes besides tensors: see art inspect.
	processBytes = 128 << 20
	// unknownFree is what is taken to be free beside the weights where the system or the device does not tell.
	unknownFree = 8 << 30
	// mostBytes is more than any machine has: more is an error where the free memory is not known, too.
	mostBytes = 1 << 46
	// reservedLength is the number of tokens of the sequences that training has memory reserved for.
	reservedLength = 1024

	fewTokens    = 2048 // of a context, below which slots are given up first
	leastContext = 256  // that a default is lowered to
)

// demand is what a base model takes on the device, in bytes.
//
//	least = weights + cache + work + process         what sampling takes; it must fit
//	all   = least + training                         what the defaults leave room for
//
// with cache and work of [engine.EstimateMemory]; training is that of [trainer.EstimateMemory] for an adapter of the
// default rank on all layers and sequences of min(context, 1024) tokens, but at most half of what weights and process
// leave: where memory is scarce, training has to do with shorter sequences.
type demand struct {
	weights, cache, work, training float64
}

func (d demand) least() float64 { return d.weights + d.cache + d.work + processBytes }

func (d demand) all() float64 { return d.least() + d.training }

// memory hands out the memory of a backend's device to its base models. It is safe for concurrent use.
type memory struct {
	free  func() (bytes int64, known bool) // tests replace it
	fused bool                             // see engine.EstimateMemory
	few   bool                             // engine.Options.FewShapes

	workers int // trainer.Options.Workers

	mu    sync.Mutex
	first float64 // what was free before the first base model; 0 when none was planned
	taken float64 // by plans, of which not all is in use yet
}

// newMemory returns that of a device, by the name that Options has for it. Of a GPU's memory go-xla tells nothing.
func newMemory(device string, few bool) *memory {
	kind, of, _ := strings.Cut(cmp.Or(device, cpu.Name), ":")
	m := &memory{fused: kind == cpu.Name, few: few, workers: runtime.GOMAXPROCS(0)}
	m.free = func() (int64, bool) { return machine.Free(os.DirFS("/")) }
	if kind == "xla" && of != "cpu" && !strings.HasPrefix(of, "cpu,") {
		m.free = func() (int64, bool) { return 0, false }
	}
	return m
}

// room is what is there for a base model, and whether that is known.
type room struct {
	bytes  float64
	known  bool
	others float64 // that is booked for base models before
}

// room returns what can be planned with. What an earlier plan took may not be in use yet, so that the system counts it
// as free.
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

// plan is how many slots of how many tokens a base model gets.
type plan struct {
	slots, context int
	demand         demand
	booked         float64 // bytes
	room           room
}

// plan chooses slots and context. Zeros in want are defaults: 32 slots of all that the model was made for, or what fits
// of that. First the context is halved down to 2048 tokens, then the slots down to 1, then the context down to 256. The
// plan is booked until it is given back. It returns [art.ErrInvalid] for what cannot be, or does not fit.
func (m *memory) plan(c *model.Config, matrices dtypes.DType, want Options) (plan, error) {
	if want.Context > c.MaxPositions || want.Context == 1 {
		err := fmt.Errorf("a context of %d tokens, where the model has 2 to %d", want.Context, c.MaxPositions)
		return plan{}, memoryError(err, "change Context of local.Options")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := sizing{
		memory: m, config: c, slots: want.Slots, context: want.Context,
		weights: weightBytes(c, matrices), params: adapterParams(c.Linears(), lora.DefaultRank),
	}
	p, ok := s.choose(m.room(s.weights))
	if !ok { // garbage of what was there before may be in the way
		debug.FreeOSMemory()
		p, ok = s.choose(m.room(s.weights))
	}
	if !ok {
		return plan{}, p.refuse()
	}
	m.taken += p.booked
	return p, nil
}

// giveBack ends the booking of a plan.
func (m *memory) giveBack(p plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken -= p.booked
}

// sizing is the choice of slots and context for a model; 0 is the default.
type sizing struct {
	*memory
	config          *model.Config
	slots, context  int
	weights, params float64 // bytes, and parameters of an adapter of the default rank
}

// choose returns the largest plan that fits, or the smallest when none does. Where slots and context are both given,
// room for training is not asked for: who gives them knows how much there will be.
func (s *sizing) choose(r room) (p plan, ok bool) {
	given := s.slots != 0 && s.context != 0
	for slots, context := range s.sizes() {
		d := s.demand(slots, context, r)
		p = plan{slots: slots, context: context, demand: d, booked: d.all(), room: r}
		if given {
			p.booked = d.least()
		}
		if p.booked <= r.bytes {
			return p, true
		}
	}
	// What is left is a single slot or what was asked for. It may do without training, and where nothing is known it is
	// tried.
	p.booked = p.demand.least()
	return p, p.booked <= r.bytes || !r.known && p.booked <= mostBytes
}

// demand returns what a plan takes.
func (s *sizing) demand(slots, context int, r room) demand {
	opts := engine.Options{Config: s.config, Slots: slots, Context: context, FewShapes: s.few}
	sampling := engine.EstimateMemory(opts, s.fused)
	adapter, work := trainer.EstimateMemory(s.config, s.params, s.workers, min(context, reservedLength))
	return demand{
		weights: s.weights, cache: sampling.Cache, work: sampling.Work,
		training: min(adapter+work, max(0, r.bytes-s.weights-processBytes)/2),
	}
}

// sizes yields slots and context to try, the largest first.
func (s *sizing) sizes() iter.Seq2[int, int] {
	slots, context := cmp.Or(s.slots, engine.DefaultSlots), cmp.Or(s.context, s.config.MaxPositions)
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

// refuse is the error of a plan that does not fit.
func (p plan) refuse() error {
	have := fmt.Sprintf("%s are free", gigabytes(p.room.bytes))
	if !p.room.known {
		have = "more than there can be"
	}
	if p.room.others > 0 {
		have += fmt.Sprintf(", and %s are planned for other base models", gigabytes(p.room.others))
	}
	d := p.demand
	err := fmt.Errorf("%d slots of %d tokens take %s of memory, with %s for the weights and %s for keys and values; %s",
		p.slots, p.context, gigabytes(d.least()), gigabytes(d.weights), gigabytes(d.cache), have)
	return memoryError(err, "lower Slots and Context of local.Options, use Weights \"bfloat16\", or a machine with more memory")
}

func memoryError(err error, hint string) error {
	return &art.Error{Op: "register", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err), Hint: hint}
}

// gigabytes is a size for people.
func gigabytes(bytes float64) string { return fmt.Sprintf("%.2f GiB", bytes/(1<<30)) }

// weightBytes returns what the weights take, when matrices have that type.
func weightBytes(c *model.Config, matrices dtypes.DType) (bytes float64) {
	for _, s := range c.Specs() {
		size := 4.0
		if len(s.Shape) == 2 && matrices == dtypes.BFloat16 {
			size = 2
		}
		for _, d := range s.Shape {
			size *= float64(d)
		}
		bytes += size
	}
	return bytes
}

// adapterParams returns the number of parameters of an adapter on these layers.
func adapterParams(layers []model.LinearShape, rank int) (n float64) {
	for _, l := range layers {
		n += float64(rank) * (float64(l.In) + float64(l.Out))
	}
	return n
}

// checkAdapter refuses an adapter with so many parameters that its copies in training do not fit into what is free.
func (m *memory) checkAdapter(c *model.Config, params float64) error {
	free, known := m.free()
	most := float64(mostBytes)
	if known {
		most = usable * float64(free)
	}
	if takes, _ := trainer.EstimateMemory(c, params, 0, leastContext); takes > most {
		return fmt.Errorf("an adapter of %.0f parameters takes %s in training; %s are free: lower the rank",
			params, gigabytes(takes), gigabytes(most))
	}
	return nil
}
