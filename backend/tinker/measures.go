package tinker

import (
	"maps"
	"math"

	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/grpo/credit"
)

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

func (d *difference) add(x float64) { d.tokens, d.sum, d.max = d.tokens+1, d.sum+x, max(d.max, x) }

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
			if s.Trained[j+1] {
				m.addToken(float64(p), float64(old(s, j+1)))
			}
		}
	}
}

// old is the logprob that the ratio of a token is taken against.
func old(s *credit.Sequence, i int) float32 {
	if s.Old != nil {
		return s.Old[i]
	}
	return s.Logprobs[i]
}

func (m *measures) addToken(p, q float64) {
	m.tokens, m.nlls = m.tokens+1, m.nlls-p
	if !m.policy {
		return
	}
	d := p - q
	ratio := math.Exp(max(-20, min(d, 20)))
	m.kl, m.distance, m.farthest = m.kl+ratio-1-d, m.distance+math.Abs(d), max(m.farthest, math.Abs(d))
	if ratio < m.lo || ratio > m.hi {
		m.clipped++
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
			to.add(math.Abs(float64(p) - float64(s.Logprobs[j+1])))
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
	if m.updates > 0 {
		maps.Copy(out, m.means())
	}
	return out
}

// means are the means over updates and their tokens.
func (m *measures) means() map[string]float64 {
	updates, tokens := float64(m.updates), float64(max(m.tokens, 1))
	out := map[string]float64{m.value: m.values / updates, m.nll: m.nlls / tokens}
	if norm := m.norms / updates; !math.IsNaN(norm) { // a service need not tell it
		out["loss/grad_norm"] = norm
	}
	if !m.policy {
		return out
	}
	maps.Copy(out, map[string]float64{
		"loss/kl_old_new": m.kl / tokens, "loss/log_ratio_mean": m.distance / tokens, "loss/log_ratio_max": m.farthest,
	})
	if !math.IsInf(m.hi, 1) {
		out["loss/clipped_fraction"] = float64(m.clipped) / tokens
	}
	return out
}
