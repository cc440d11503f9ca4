package local

import (
	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/trainer"
)

// metrics counts what a training call was given.
func (b *batch) metrics(groups []*art.TrajectoryGroup) map[string]float64 {
	out := map[string]float64{
		"data/groups":               float64(len(groups)),
		"data/groups_trainable":     float64(b.groups),
		"data/trajectories_trained": float64(b.trained),
		"data/tokens_trained":       float64(grpo.NumTrained(b.sequences)),
	}
	for _, s := range b.skipped {
		out["data/skipped_"+string(s.Reason)]++
	}
	return out
}

// policyMetrics are what the trainer did. Loss metrics are means over updates; the gap is that of the first update, when sampler
// and trainer have the same weights.
func policyMetrics(r trainer.Report) map[string]float64 {
	sums := r.Sums
	sums.Loss /= float64(max(1, r.Updates))
	metrics := sums.Metrics()
	first := r.First.Metrics()
	for _, key := range []string{"train/logprob_gap_max", "train/logprob_gap_mean"} {
		metrics[key] = first[key]
	}
	delete(metrics, "train/tokens") // counts a token once for each epoch; data/tokens_trained does not
	metrics["train/grad_norm"] = r.Norm
	metrics["train/updates"] = float64(r.Updates)
	metrics["train/updates_skipped"] = float64(r.Skipped)
	metrics["data/tokens_computed"] = float64(r.Computed)
	return metrics
}

// sftMetrics are what the trainer did by supervised training, where there is no policy that sampled.
func sftMetrics(r trainer.Report) map[string]float64 {
	metrics := policyMetrics(r)
	metrics["loss/sft"] = metrics["loss/entropy"] // the mean of -logprob is both
	for _, key := range []string{"loss/policy", "loss/entropy", "loss/kl_old_new", "ratio/clipped_frac", "train/logprob_gap_max", "train/logprob_gap_mean"} {
		delete(metrics, key)
	}
	return metrics
}
