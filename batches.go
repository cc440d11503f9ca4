package art

import (
	"iter"
	"slices"
)

// BatchOptions say how scenarios are split into batches. The zero value and a nil *BatchOptions are the defaults.
type BatchOptions struct {
	// Size of a batch. The last one of an epoch may be smaller. Default 1, also for less.
	Size int
	// Epochs is how often all scenarios are yielded. Default 1; negative is forever.
	Epochs int
	// Seed of the order.
	Seed uint64
	// Start is the first step to yield: a resumed run skips the batches before it. Less than 0 is 0.
	Start int
	// InOrder keeps the order of the scenarios. By default each epoch is shuffled, depending on Seed and the epoch only.
	InOrder bool
}

// Batch is the scenarios of one training step.
type Batch[S any] struct {
	Step      int // since the beginning of the first epoch
	Epoch     int
	EpochStep int // since the beginning of the epoch
	Items     []S
}

// Batches splits scenarios into batches. Started at step k it yields exactly what a sequence from the beginning yields
// after its first k batches:
//
//	for batch := range art.Batches(scenarios, &art.BatchOptions{Size: 8, Epochs: 3, Start: model.Step()}) {
//
// Without scenarios there are no batches. opts may be nil.
func Batches[S any](scenarios []S, opts *BatchOptions) iter.Seq[Batch[S]] {
	o := opts.withDefaults()
	return func(yield func(Batch[S]) bool) {
		perEpoch := len(scenarios) / o.Size
		if len(scenarios)%o.Size > 0 {
			perEpoch++
		}
		if perEpoch == 0 {
			return
		}
		for epoch := o.Start / perEpoch; o.Epochs < 0 || epoch < o.Epochs; epoch++ {
			b := Batch[S]{Step: epoch * perEpoch, Epoch: epoch}
			for indices := range slices.Chunk(o.order(epoch, len(scenarios)), o.Size) {
				b.Items = pick(scenarios, indices)
				if b.Step >= o.Start && !yield(b) {
					return
				}
				b.Step++
				b.EpochStep++
			}
		}
	}
}

// pick returns the scenarios at the given indices.
func pick[S any](scenarios []S, indices []int) []S {
	out := make([]S, len(indices))
	for i, at := range indices {
		out[i] = scenarios[at]
	}
	return out
}

// withDefaults returns a copy with defaults filled in.
func (o *BatchOptions) withDefaults() BatchOptions {
	var d BatchOptions
	if o != nil {
		d = *o
	}
	d.Size, d.Start = max(d.Size, 1), max(d.Start, 0)
	if d.Epochs == 0 {
		d.Epochs = 1
	}
	return d
}

// order returns the indices of n scenarios in the order of an epoch.
func (o *BatchOptions) order(epoch, n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if !o.InOrder {
		swap := func(i, j int) { order[i], order[j] = order[j], order[i] }
		newRand(mix(seedShuffle, o.Seed, uint64(epoch))).Shuffle(n, swap)
	}
	return order
}
