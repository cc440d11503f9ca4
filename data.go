package art

import (
	"cmp"
	"encoding/json"
	"errors"
	"iter"
	"slices"
)

// Example is one line of a file of training data in OpenAI's fine-tuning format: {"messages": [...], "tools": [...]}.
//
// What was read is written back the same but for insignificant space: unknown fields of the line, of its messages and
// of its tools, and the order of keys; see [Message.UnmarshalJSON]. Unknown fields have no effect on training: that
// goes for OpenAI's weight of a message too.
type Example struct {
	History

	wire []wireField // what the fields above do not hold; nil for an example made in Go
}

// UnmarshalJSON reads a line. One without messages, or in which a field has the wrong type, is an [ErrInvalid] that
// names the field.
func (e *Example) UnmarshalJSON(data []byte) error { return wireError("read example", e.decode(data)) }

func (e *Example) decode(data []byte) error {
	d := newDecoder(data)
	var read Example
	read.Messages = elements(d, "messages", (*Message).decode)
	read.Tools = elements(d, "tools", (*Tool).decode)
	if len(read.Messages) == 0 {
		d.fail("messages", "is missing or empty")
	}
	if d.err != nil {
		return d.err
	}
	known, err := read.known()
	if err != nil {
		return err
	}
	read.wire = keepWire(d.fields, known)
	*e = read
	return nil
}

// MarshalJSON writes a line; see [Example.UnmarshalJSON]. Samples are not part of it. An example without messages is an
// [ErrInvalid].
func (e Example) MarshalJSON() ([]byte, error) {
	if len(e.Messages) == 0 {
		return nil, wireError("write example", errors.New("messages is empty"))
	}
	known, err := e.known()
	if err != nil {
		return nil, err
	}
	return appendObject(nil, e.wire, known), nil
}

func (e *Example) known() ([]knownField, error) {
	messages, err := arrayOf(e.Messages)
	if err != nil {
		return nil, err
	}
	tools, err := arrayOf(e.Tools)
	if err != nil {
		return nil, err
	}
	return []knownField{
		{key: "messages", raw: messages, says: func(json.RawMessage) bool { return false }},
		{key: "tools", raw: tools, zero: tools == nil, says: func(json.RawMessage) bool {
			return tools == nil // of tools only null and [] are kept
		}},
	}, nil
}

// arrayOf writes a list as JSON; nil when it is empty.
func arrayOf[T json.Marshaler](list []T) (json.RawMessage, error) {
	if len(list) == 0 {
		return nil, nil
	}
	b := json.RawMessage{'['}
	for i := range list {
		element, err := list[i].MarshalJSON()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, element...)
	}
	return append(b, ']'), nil
}

// Trajectory returns the example as a trajectory for [Model.TrainSFT]. It shares the messages and tools of e.
func (e *Example) Trajectory() *Trajectory {
	return &Trajectory{History: e.History, Metrics: map[string]float64{}, Metadata: map[string]any{}}
}

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
				b.Items = make([]S, len(indices))
				for i, at := range indices {
					b.Items[i] = scenarios[at]
				}
				if b.Step >= o.Start && !yield(b) {
					return
				}
				b.Step++
				b.EpochStep++
			}
		}
	}
}

func (o *BatchOptions) withDefaults() BatchOptions {
	d := deref(o)
	d.Size, d.Start, d.Epochs = max(d.Size, 1), max(d.Start, 0), cmp.Or(d.Epochs, 1)
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
