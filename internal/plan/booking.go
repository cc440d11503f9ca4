package plan

import (
	"cmp"
	"iter"
	"math"
	"os"
	"runtime/debug"
	"sync"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/lora"
)

// UnknownFree is assumed to be free beside the weights where the system or the device does not report it.
const UnknownFree = 8 << 30

const (
	// usable is the fraction of the free memory that may be planned. The rest is for garbage, and for other programs.
	usable = 0.9
	// mostBytes is more than any machine has. More is an error even where the free memory is not known.
	mostBytes = 1 << 46
	// reservedLength is the length of sequences for which training has memory reserved.
	reservedLength = 1024

	slotTokens   = 2048 // of the cache for each slot, by default
	fewTokens    = 2048 // the context at which slots are lowered first
	leastContext = 256  // the lowest default
)

// Device books the memory of a backend's device for its base models. It is safe for concurrent use, but for its fields.
type Device struct {
	Profile graphx.Profile
	Devices int // that share this memory, each with the weights
	// Free is what is free now; of a device with memory of its own, what was when it was opened.
	Free func() (bytes int64, known bool)
	Held func() int64 // by the device, for its next runs; nil is nothing

	workers int // micro-batches at once

	mu    sync.Mutex
	first float64 // free before the first base model; 0 when none was planned
	taken float64 // booked by plans, not all of it in use yet
	least float64 // of what is booked, what is not for training
}

// NewDevice returns the memory of one device. That of its own is not known: the caller may set Free.
func NewDevice(on graphx.Profile) *Device {
	d := &Device{Profile: on, Devices: 1, workers: on.RunsAtOnce()}
	d.Free = func() (int64, bool) { return machine.Free(os.DirFS("/")) }
	if on.OwnMemory {
		d.Free = func() (int64, bool) { return 0, false }
	}
	return d
}

// Booking is what was chosen for a base model, and the memory that it has.
//
//	least = weights + cache + work + programs + process    for sampling; it must fit
//	all   = least + training                               for which the defaults leave room
//
// with programs at most a sixteenth of what is free. Training is that of [Training.Memory] for an adapter of the
// default rank on all layers and sequences of min(context, 1024) tokens. Where that lets a larger size fit, layers are
// computed again; and training has at most half of what weights and process leave: where memory is scarce, it is
// limited to shorter sequences.
type Booking struct {
	Sampling
	Memory           // of sampling, on all devices
	Training float64 // bytes
	Room             // that there was

	recompute bool    // training has room only if it computes layers again
	bytes     float64 // booked
}

// Least is the memory of sampling, the rest of the process included.
func (b Booking) Least() float64 { return b.Weights + b.Cache + b.Work + b.Programs + ProcessBytes }

// Room is the memory available to a base model.
type Room struct {
	Bytes  float64
	Known  bool    // else Bytes is what was assumed
	Others float64 // booked for other base models
}

// room returns the memory available for planning. What earlier plans booked may not be in use yet, so that the system
// counts it as free.
func (d *Device) room(weights float64) Room {
	free, known := d.Free()
	if !known {
		return Room{weights + UnknownFree, false, d.taken}
	}
	bytes := usable * float64(free)
	if d.taken > 0 {
		bytes = min(bytes, d.first-d.taken)
	} else {
		d.first = bytes
	}
	return Room{max(0, bytes), true, d.taken}
}

// Book chooses slots, context and the tokens of the cache. Zeros in want are defaults: 32 slots, the model's context,
// and a cache of 2048 tokens for each slot, at least the context. What does not fit is lowered: first the cache, down
// to the context, then the room for training to that of layers that are computed again, then the context down to 2048,
// the slots down to 1, and the context down to 256. If slots and context are both given, no room for training is
// required. What is chosen stays booked until [Device.GiveBack]. Where nothing fits, ok is false and nothing is booked.
func (d *Device) Book(want Sampling, training Sizes) (b Booking, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	want.On = d.Profile
	training.Workers = d.workers
	s := sizing{
		Device: d, want: want, sizes: training, training: Training{Config: want.Config, On: d.Profile},
		weights: float64(d.Devices) * want.weights(),
	}
	for _, l := range want.Config.Linears() {
		s.training.Params += AdapterParams(lora.LayerShape(l), lora.DefaultRank)
	}
	if b, ok = s.choose(d.room(s.weights)); !ok { // garbage may still be counted as used
		debug.FreeOSMemory()
		b, ok = s.choose(d.room(s.weights))
	}
	if ok {
		d.taken, d.least = d.taken+b.bytes, d.least+b.Least()
	}
	return b, ok
}

// GiveBack ends a booking.
func (d *Device) GiveBack(b Booking) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken, d.least = d.taken-b.bytes, d.least-b.Least()
}

// AdapterParams is the number of parameters of an adapter on a layer, without magnitudes.
func AdapterParams(l lora.LayerShape, rank int) float64 {
	return float64(rank) * (float64(l.In) + float64(l.Out))
}

// sizing is the choice of slots, context and tokens of the cache for a base model.
type sizing struct {
	*Device
	want     Sampling // 0 is the default
	sizes    Sizes
	training Training // for which room is reserved
	weights  float64  // bytes, on all devices
}

// choose returns the largest sizes that fit, or the smallest when none do.
func (s *sizing) choose(r Room) (b Booking, ok bool) {
	for slots, context := range s.tries() {
		try := s.want
		try.Slots, try.Context, try.CacheTokens = slots, context, cmp.Or(s.want.CacheTokens, context)
		for _, recompute := range []bool{s.sizes.Recompute, true} {
			if b = s.booking(try, recompute, r); b.bytes <= r.Bytes {
				return s.widen(b), true
			}
		}
	}
	// b is the smallest size or the given one. It need not have room for training, and is tried where nothing is known.
	b.bytes = math.Ceil(b.Least())
	return b, b.bytes <= r.Bytes || !r.Known && b.bytes <= mostBytes
}

// booking returns what sizes take.
func (s *sizing) booking(of Sampling, recompute bool, r Room) Booking {
	b := Booking{Sampling: of, Memory: of.withoutWeights(), Room: r, recompute: recompute}
	n := float64(s.Devices)
	b.Weights, b.Cache, b.Work, b.Programs = s.weights, n*b.Cache, n*b.Work, min(n*b.Programs, r.Bytes/16)
	sizes, length := s.training.WithDefaults(s.sizes), min(of.Context, reservedLength)
	sizes.Recompute = recompute
	work := s.training.work(sizes, length) + float64(TrainingPrograms(of.Config))
	b.Training = min(s.training.copies(false)+n*work, max(0, r.Bytes-s.weights-ProcessBytes)/2)
	b.bytes = b.Least()
	if s.want.Slots == 0 || s.want.Context == 0 {
		b.bytes += b.Training
	}
	b.bytes = math.Ceil(b.bytes) // so that sums of bookings are exact
	return b
}

// widen gives the cache of a booking that fits the default number of tokens, or as many as fit.
func (s *sizing) widen(b Booking) Booking {
	most := max(b.Context, slotTokens*min(b.Slots, mostBytes))
	if b.Context < slotTokens {
		most = b.Context * min(b.Slots, mostBytes)
	}
	if s.want.CacheTokens != 0 || most <= b.CacheTokens {
		return b
	}
	of := b.Sampling
	of.CacheTokens *= 2
	each := (s.booking(of, b.recompute, b.Room).Cache - b.Cache) / float64(b.CacheTokens)
	more := min(float64(most-b.CacheTokens), (b.Room.Bytes-b.bytes)/each-2*BlockTokens)
	if more <= 0 {
		return b
	}
	of.CacheTokens = b.CacheTokens + int(more)
	return s.booking(of, b.recompute, b.Room)
}

// tries yields slots and context to try, the largest first.
func (s *sizing) tries() iter.Seq2[int, int] {
	want := s.want
	slots, context := cmp.Or(want.Slots, DefaultSlots), cmp.Or(want.Context, want.Config.MaxPositions)
	if want.Context == 0 && want.CacheTokens != 0 {
		context = min(context, want.CacheTokens)
	}
	return func(yield func(slots, context int) bool) {
		more := yield(slots, context)
		for more && want.Context == 0 && context/2 >= fewTokens {
			context /= 2
			more = yield(slots, context)
		}
		for more && want.Slots == 0 && slots > 1 {
			slots /= 2
			more = yield(slots, context)
		}
		for more && want.Context == 0 && context/2 >= leastContext {
			context /= 2
			more = yield(slots, context)
		}
	}
}

// Holds reports whether a training may begin: whether free memory holds the copies of an adapter, or all that a
// training of all weights takes at least.
func (d *Device) Holds(t Training) (takes, free float64, ok bool) {
	t.On = d.Profile
	free, known := d.available(usable)
	if !known {
		free = mostBytes
	}
	takes = t.copies(false)
	if t.Full {
		least := Sizes{Workers: 1, MicroTokens: leastContext, Recompute: true}
		takes += t.work(least, leastContext) + float64(TrainingPrograms(t.Config))
	}
	return takes, free, takes <= free
}

// Fit calls fit, which chooses sizes of a training that takes no more than so many bytes, with what is free; and, where
// that is too little or sizes are lowered, again with all of it, after garbage was freed. Where the free memory is not
// known, fit is not called.
func (d *Device) Fit(fit func(bytes float64) (takes float64, lowered, ok bool)) (takes, free float64, ok bool) {
	free, known := d.available(usable)
	if !known {
		return 0, 0, true
	}
	takes, lowered, ok := fit(free)
	if d.Profile.OwnMemory || ok && !lowered {
		return takes, free, true
	}
	debug.FreeOSMemory() // garbage may still be counted as used
	free, _ = d.available(1)
	takes, _, ok = fit(free)
	return takes, free, ok
}

// available is the memory for a training: a part of what is free, and what the device has for its runs. A device with
// memory of its own keeps what it has once taken, and does not say how much of that is in use: so it is a part of what
// was free in the beginning, without what base models are planned to take, and the same for every training.
func (d *Device) available(part float64) (bytes float64, known bool) {
	free, known := d.Free()
	bytes = part * float64(free)
	if d.Profile.OwnMemory {
		d.mu.Lock()
		defer d.mu.Unlock()
		return max(0, bytes-d.least), known
	}
	if d.Held != nil {
		bytes += float64(d.Held())
	}
	return bytes, known
}
