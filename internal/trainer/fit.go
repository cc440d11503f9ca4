package trainer

import (
	"iter"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/model"
)

// Sizes decide how much memory a training takes.
type Sizes struct {
	Workers     int // micro-batches at once
	MicroTokens int // see Options
	// Recompute computes layers again for their gradient: of all micro-batches if [Options].Recompute says so, otherwise
	// of those that do not fit without.
	Recompute bool
	// Narrow bounds a micro-batch with shared tokens by MicroTokens alone, see [Sizes.shared].
	Narrow bool
}

// shared is how many tokens a micro-batch may have whose sequences, of up to so many tokens, share some of them. It is
// computed alone, where others are computed several at once: so it may have three times MicroTokens, and, unless
// Narrow, twice a sequence. With three times MicroTokens alone, a group of a large model with a long prompt would not
// share it.
func (s Sizes) shared(length int) int {
	most := sharedPieces * s.MicroTokens
	if !s.Narrow {
		most = max(most, sharedLengths*padLength(length))
	}
	return most
}

// sizes are those of options where memory is plenty.
func (o Options) sizes(c *model.Config) Sizes {
	s := Sizes{Workers: o.Workers, MicroTokens: o.MicroTokens, Recompute: o.Recompute, Narrow: o.Narrow}
	if s.Workers <= 0 {
		// On a GPU one. A second would overlap the upload of its inputs, some kilobytes of ids, with the computation of the
		// one before: microseconds of hundreds of milliseconds, for which it would take the memory of another micro-batch.
		s.Workers = graphx.ProfileOf(o.Device).RunsAtOnce()
	}
	if s.MicroTokens <= 0 {
		s.MicroTokens = microTokens(c)
	}
	return s
}

// Sizes are those of the next call.
func (t *Trainer) Sizes() Sizes { return t.sizes }

// Fit chooses sizes with which the next calls take no more than so many bytes, for sequences of up to length tokens,
// and returns what they take by [EstimateMemory], without the programs that are there already: those of the options, if
// they fit; else fewer programs are kept, then fewer micro-batches computed at once, then layers computed again. None
// of it changes a bit of a result. Where that is not enough, and the options do not have MicroTokens, micro-batches are
// Narrow, and then MicroTokens are halved, down to one sequence in a micro-batch: sums of gradients are then added in
// another order. ok is false when nothing fits; the smallest sizes are then chosen.
func (t *Trainer) Fit(length int, bytes float64) (takes float64, ok bool) {
	e := t.estimate()
	if t.opts.FewShapes {
		length = powerLength(length)
	}
	on := graphx.ProfileOf(t.opts.Device)
	copies, places := t.target.copies(on), 1.0
	if !on.OwnMemory { // else bytes are those of each device
		places = float64(len(t.places()))
	}
	for s := range t.smaller(length) {
		t.sizes, t.room = s, 0
		for _, part := range programParts {
			programs := t.limitPrograms(part)
			if takes = copies + places*(e.work(s, length)+programs); takes > bytes {
				continue
			}
			if s.Recompute && !t.opts.Recompute {
				t.room = (bytes-copies)/places - programs
			}
			return takes, true
		}
	}
	return takes, false
}

// estimate is that of the target.
func (t *Trainer) estimate() estimate {
	e := t.target.estimate(graphx.ProfileOf(t.opts.Device))
	e.shares = t.shares()
	return e
}

// recomputes reports whether layers of a micro-batch, one of all, are computed again for their gradient. Sizes are
// chosen for the largest micro-batches that there may be; one that fits as it is keeps its layers, which takes less
// time.
func (t *Trainer) recomputes(p piece, all []piece) bool {
	if !t.sizes.Recompute || t.room == 0 {
		return t.sizes.Recompute
	}
	atOnce := float64(min(t.sizes.Workers, len(all)))
	if t.large(p) {
		atOnce = 1
	}
	length := p.Layout.Length
	for _, b := range p.Layout.Branches {
		length = max(length, b.Keys)
	}
	// A tenth is left for what others begin meanwhile.
	return atOnce*t.estimate().pass(Sizes{}, t.size(p.Layout), length) > 0.9*t.room
}

// limitPrograms gives programs a part of ProgramBytes, and returns how many bytes more than now they may take.
func (t *Trainer) limitPrograms(part float64) float64 {
	most := int64(part * float64(t.opts.ProgramBytes))
	for _, p := range t.places() {
		p.programs.Limit(most)
	}
	return float64(max(0, most-t.programs.Bytes()))
}

// Lowered reports whether the sizes are smaller than those of the options, or fewer programs kept.
func (t *Trainer) Lowered() bool {
	return t.sizes != t.opts.sizes(t.target.config) || t.programs.Most() < t.opts.ProgramBytes
}

// smaller yields sizes that take less and less memory.
func (t *Trainer) smaller(length int) iter.Seq[Sizes] {
	return func(yield func(Sizes) bool) {
		most := t.opts.sizes(t.target.config)
		s, more := most, true
		for _, recompute := range []bool{most.Recompute, true} {
			s.Recompute = recompute
			for s.Workers = most.Workers; more && s.Workers > 1; s.Workers /= 2 {
				more = yield(s)
			}
			s.Workers = 1
			more = more && yield(s)
		}
		if t.opts.MicroTokens > 0 {
			return
		}
		if s.Narrow = true; more && t.shares() {
			more = yield(s)
		}
		for more && sharedPieces*s.MicroTokens > padLength(length) {
			s.MicroTokens /= 2
			more = yield(s)
		}
	}
}

// shares reports whether what sequences have in common is computed once.
func (t *Trainer) shares() bool { return !t.opts.Alone }
