package tinker

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
)

// learning is a training call: sequences, and how they are trained on.
type learning struct {
	op          string
	sequences   []credit.Sequence // normalised
	together    int               // consecutive sequences that belong to the same optimizer step
	epochs      int
	miniBatches int // optimizer steps of an epoch
	seed        uint64
	loss        credit.Loss
	config      loop.LossConfig
	adam        loop.AdamW
	rate        func(step int) float64
	progress    func(art.TrainProgress)
	// prepare changes the sequences of an optimizer step before it is made, and returns a value to take the mean of. nil
	// is none.
	prepare func(ctx context.Context, part []credit.Sequence) ([]credit.Sequence, float64, error)
	// after measures the new weights. nil is nothing.
	after   func(ctx context.Context) (map[string]float64, error)
	measure *measures
}

// run makes the optimizer steps, or skips those whose gradient is not finite. e.training is held.
func (l *learning) run(ctx context.Context, b *Backend, e *entry) error {
	units := slices.Collect(slices.Chunk(l.sequences, l.together))
	total := l.epochs * min(l.miniBatches, len(units))
	for epoch := range l.epochs {
		parts := credit.Split(units, l.miniBatches, rand.New(rand.NewPCG(l.seed, uint64(epoch))))
		if epoch == 0 && l.measure.policy && len(parts) > 1 {
			if err := l.compareLater(ctx, b, e, slices.Concat(parts[1:]...)); err != nil {
				return err
			}
		}
		for _, part := range parts {
			if err := l.step(ctx, b, e, part); err != nil {
				return err
			}
			if l.progress != nil {
				l.progress(art.TrainProgress{Done: l.measure.steps(), Total: total, Metrics: l.measure.metrics()})
			}
		}
	}
	if skipped := l.measure.skipped; skipped > 0 {
		b.opts.Logger.Warn("optimizer steps were skipped because their gradient is NaN or infinite: make rewards smaller, "+
			"leave NormalizeAdvantages unset, or go back with Model.Restore if earlier steps made the adapter too large",
			"model", e.model, "data/updates", l.measure.updates, "data/updates_skipped", skipped)
	}
	return nil
}

// compareLater compares the trainer with the sampler for sequences whose own pass comes after an update.
func (l *learning) compareLater(ctx context.Context, b *Backend, e *entry, later []credit.Sequence) error {
	logprobs, err := b.score(ctx, e, l.op, later)
	if err != nil {
		return err
	}
	for i := range logprobs { // of targets
		logprobs[i] = logprobs[i][1:]
	}
	l.measure.compare(later, logprobs)
	return nil
}

// step makes one optimizer step.
func (l *learning) step(ctx context.Context, b *Backend, e *entry, part []credit.Sequence) error {
	value := 0.0
	if l.prepare != nil {
		var err error
		if part, value, err = l.prepare(ctx, part); err != nil {
			return err
		}
	}
	call := &pass{op: l.op, data: dataOf(part), loss: l.loss, config: l.config}
	result, err := b.runPass(ctx, e, call)
	if err != nil {
		return err
	}
	adam := l.adam
	adam.LearningRate = l.rate(l.measure.steps())
	updated, err := b.optimStep(ctx, e, adam)
	if err != nil {
		return err
	}
	if l.prepare == nil {
		value = result.Loss
	}
	l.measure.add(part, result.Logprobs, value, updated)
	return nil
}

// dataOf writes sequences as data. Weights are divided by the number of trained tokens, since the losses of the
// protocol are sums.
func dataOf(sequences []credit.Sequence) []loop.Datum {
	data := make([]loop.Datum, len(sequences))
	total := float64(credit.NumTrained(sequences))
	for i := range sequences {
		s := &sequences[i]
		n := s.NumInputs()
		d := loop.Datum{
			Input: s.IDs[:n], Targets: make([]int32, n), Weights: make([]float32, n), Logprobs: make([]float32, n),
			Advantages: make([]float32, n),
		}
		for j := range n {
			d.Targets[j] = loop.NoTarget
			if s.Trained[j+1] {
				d.Targets[j], d.Logprobs[j] = s.IDs[j+1], s.Logprobs[j+1]
				d.Weights[j], d.Advantages[j] = float32(s.Weight/total), float32(s.Advantage)
			}
			if s.Trained[j+1] && s.Old != nil {
				d.Logprobs[j] = s.Old[j+1]
			}
			if s.Shaping != nil {
				d.Advantages[j] = float32(s.Advantage + s.Shaping[j+1])
			}
		}
		data[i] = d
	}
	return data
}

// score computes the logprobs of trained tokens under the training state, per token, as sequences have them.
func (b *Backend) score(ctx context.Context, e *entry, op string, sequences []credit.Sequence) ([][]float32, error) {
	call := &pass{op: op, data: dataOf(sequences), loss: credit.CrossEntropy, forwardOnly: true}
	result, err := b.runPass(ctx, e, call)
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(sequences))
	for i := range sequences {
		out[i] = make([]float32, len(sequences[i].IDs))
		copy(out[i][1:], result.Logprobs[i])
	}
	return out, nil
}

// scoreBase computes the same under the base model, by its sampler.
func (b *Backend) scoreBase(
	ctx context.Context, e *entry, op string, sequences []credit.Sequence,
) ([][]float32, error) {
	var made result
	err := b.post(ctx, "create_sampling_session", request{
		SessionID: b.session, SamplingSessionSeqID: b.nextSampler(), BaseModel: e.base, Type: "create_sampling_session",
	}, &made)
	if err != nil {
		return nil, err
	}
	base := &serving{sampler: made.SamplingSessionID}
	out := make([][]float32, len(sequences))
	for i := range sequences {
		s := &sequences[i]
		logprobs, err := b.promptLogprobs(ctx, op, base, s.IDs[:s.NumInputs()+1])
		if err != nil {
			return nil, err
		}
		out[i] = make([]float32, len(s.IDs))
		copy(out[i], logprobs)
		out[i][0] = 0 // nothing predicts it
	}
	return out, nil
}
