package tinker

import (
	"context"

	"math"
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
			// Compare the trainer with the sampler for sequences whose own pass comes after an update.
			later := slices.Concat(parts[1:]...)
			logprobs, err := b.score(ctx, e, l.op, later)
			if err != nil {
				return err
			}
			for i := range logprobs { // of targets
				logprobs[i] = logprobs[i][1:]
			}
			l.measure.compare(later, logprobs)
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
		SessionID: b.session, SamplingSessionSeqID: new(int(b.samplers.Add(1)) - 1), BaseModel: e.base,
		Type: "create_sampling_session",
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

// measures adds up the metrics of a training call. They have the names and formulas of backend/local's, and are
// computed here, from the logprobs that the service returns.
type measures struct {
	value  string // the metric that is the mean over updates of a value: "loss/policy"
	nll    string // the metric that is the mean of -logprob: "loss/entropy"
	policy bool   // tokens were sampled: there are ratios
	lo, hi float64

	updates, skipped             int
	values, norms                float64
	tokens, clipped              int
	nlls, kl, distance, farthest float64
	gap, offPolicy               difference
}

// difference is how far two logprobs of the same tokens are apart, in nats.
type difference struct {
	tokens   int
	sum, max float64
}

// steps is the number of optimizer steps so far.
func (m *measures) steps() int { return m.updates + m.skipped }

// add adds an optimizer step: sequences, the logprobs of their targets before it, and its result.
func (m *measures) add(part []credit.Sequence, logprobs [][]float32, value float64, updated *loop.OptimResult) {
	if m.policy && m.steps() == 0 {
		m.compare(part, logprobs)
	}
	if updated.Skipped {
		m.skipped++
		return
	}
	m.updates++
	m.values, m.norms = m.values+value, m.norms+updated.GradNorm
	for i := range part {
		s := &part[i]
		for j, p := range logprobs[i] {
			if !s.Trained[j+1] {
				continue
			}
			m.tokens, m.nlls = m.tokens+1, m.nlls-float64(p)
			if !m.policy {
				continue
			}
			old := s.Logprobs
			if s.Old != nil {
				old = s.Old
			}
			d := float64(p) - float64(old[j+1])
			ratio := math.Exp(max(-20, min(d, 20)))
			m.kl, m.distance, m.farthest = m.kl+ratio-1-d, m.distance+math.Abs(d), max(m.farthest, math.Abs(d))
			if ratio < m.lo || ratio > m.hi {
				m.clipped++
			}
		}
	}
}

// compare measures how far the trainer is from the sampler, before any update: for tokens of the step that is trained,
// and for those of others.
func (m *measures) compare(part []credit.Sequence, logprobs [][]float32) {
	for i := range part {
		s := &part[i]
		for j, p := range logprobs[i] {
			if !s.Trained[j+1] { // those after the last trained one are not there, or 0
				continue
			}
			to := &m.gap
			if s.Staleness != nil && s.Staleness[j+1] != 0 {
				to = &m.offPolicy
			}
			x := math.Abs(float64(p) - float64(s.Logprobs[j+1]))
			to.tokens, to.sum, to.max = to.tokens+1, to.sum+x, max(to.max, x)
		}
	}
}

// metrics are those so far. What is a mean over updates is absent before the first one that was made.
func (m *measures) metrics() map[string]float64 {
	out := map[string]float64{"data/updates": float64(m.updates), "data/updates_skipped": float64(m.skipped)}
	for name, d := range map[string]difference{"train/logprob_gap": m.gap, "offpolicy/logprob_diff": m.offPolicy} {
		if d.tokens > 0 {
			out[name+"_mean"], out[name+"_max"] = d.sum/float64(d.tokens), d.max
		}
	}
	if m.updates == 0 {
		return out
	}
	updates, tokens := float64(m.updates), float64(max(m.tokens, 1))
	out[m.value] = m.values / updates
	out[m.nll] = m.nlls / tokens
	if norm := m.norms / updates; !math.IsNaN(norm) { // a service need not tell it
		out["loss/grad_norm"] = norm
	}
	if !m.policy {
		return out
	}
	out["loss/kl_old_new"] = m.kl / tokens
	out["loss/log_ratio_mean"], out["loss/log_ratio_max"] = m.distance/tokens, m.farthest
	if !math.IsInf(m.hi, 1) {
		out["loss/clipped_fraction"] = float64(m.clipped) / tokens
	}
	return out
}
