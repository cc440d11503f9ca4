package credit

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Weighting says how much a token counts in the loss of a batch.
type Weighting string

// Weightings.
const (
	// WeightTrajectory weighs a trajectory's tokens 1 / their number: every trajectory counts once, however long it is,
	// as in GRPO (Shao et al. 2024, https://arxiv.org/abs/2402.03300). The default, as in ART, for episodes that should
	// count alike. A bad answer is penalised less per token the longer it is, so watch that answers do not grow.
	WeightTrajectory Weighting = "trajectory"
	// WeightToken weighs all tokens equally, over the whole batch: long answers count more (DAPO, Yu et al. 2025,
	// https://arxiv.org/abs/2503.14476). For long reasoning; a few very long answers can dominate an update.
	WeightToken Weighting = "token"
	// WeightConstant divides the sum over a trajectory's tokens by the same length for all: no bias by length, and
	// shorter answers move less (Dr. GRPO, Liu et al. 2025, https://arxiv.org/abs/2503.20783). Where answers grow and do
	// not improve.
	WeightConstant Weighting = "constant"
)

// NormalizeConfig says how a batch is normalised. The zero value is the default.
type NormalizeConfig struct {
	// Weighting defaults to WeightTrajectory.
	Weighting Weighting
	// Length is L of WeightConstant, in tokens. 0 is the number of trained tokens of the longest trajectory of the batch;
	// set it, so that updates of different batches compare.
	Length int
	// Balance, from -1 to 1, shrinks one sign of advantages before they are divided by their mean absolute value: above 0
	// negative ones by the factor 1-Balance, below 0 positive ones by 1+Balance. At 1 only what went well is trained on.
	// ART's advantage_balance. Try 0.5 when entropy explodes.
	Balance float64
	// Advantages divides advantages by their mean absolute value, so that the size of a step does not depend on the size
	// of rewards, as in ART. nil is true. false where the learning rate is tuned to the rewards, as in Dr. GRPO.
	Advantages *bool
}

// validate lists every problem.
func (c NormalizeConfig) validate() error {
	var found problems
	checkName(&found, "weighting", c.Weighting, WeightTrajectory, WeightToken, WeightConstant)
	found.check(c.Length >= 0, "length is %d, want >= 0", c.Length)
	found.check(c.Length <= 0 || c.Weighting == WeightConstant, "length is %d, only weighting %q uses it", c.Length,
		WeightConstant)
	found.check(c.Balance >= -1 && c.Balance <= 1, "advantage balance is %v, want -1 to 1", c.Balance)
	return found.err()
}

// Normalize returns the sequences of one batch with weights and advantages set; the ones given stay as they are. With
// T(t) the number of trained tokens of trajectory t, over all its histories, and means over all trained tokens of the
// batch,
//
//	w  = 1 / T(t)               (WeightTrajectory: each trajectory counts once, however long it is)
//	w  = 1                      (WeightToken)
//	w /= mean(w)
//	A *= 1 - Balance            (A < 0 and Balance > 0)
//	A *= 1 + Balance            (A > 0 and Balance < 0)
//	A /= mean(|A|·w)            (unless Advantages is false, or all A are 0)
//
// so that Σ w and Σ |A|·w over trained tokens both equal their number. WeightConstant is not divided by its mean: with
// N trained tokens of K trajectories
//
//	w = N / (K·L)
//
// A weight that is already set is overwritten. An advantage beyond float32, in which losses are computed, is an error.
// All of it is of the batch, so a loss does not depend on how the batch is split into micro-batches.
//
// Source: OpenPipe's ART (without its 1e-6 in the denominators), balance included.
func Normalize(seqs []Sequence, cfg NormalizeConfig) ([]Sequence, error) {
	out := slices.Clone(seqs)
	for i := range out {
		out[i].Weight = 0
	}
	if err := ValidateAll(out); err != nil {
		return nil, err
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	tokens, total := map[int]int{}, NumTrained(out) // trained tokens, by trajectory and all
	for i := range out {
		tokens[out[i].Trajectory] += out[i].NumTrained()
	}
	length := cfg.Length
	if length == 0 {
		length = slices.Max(append(slices.Collect(maps.Values(tokens)), 0))
	}
	for i := range out {
		switch cfg.Weighting {
		case WeightToken:
			out[i].Weight = 1
		case WeightConstant:
			out[i].Weight = float64(total) / (float64(len(tokens)) * float64(length))
		default:
			// The mean of 1/T over N trained tokens of K trajectories is K/N.
			out[i].Weight = float64(total) / (float64(len(tokens)) * float64(tokens[out[i].Trajectory]))
		}
		switch a := &out[i].Advantage; {
		case cfg.Balance > 0 && *a < 0:
			*a *= 1 - cfg.Balance
		case cfg.Balance < 0 && *a > 0:
			*a *= 1 + cfg.Balance
		}
	}
	if cfg.Advantages == nil || *cfg.Advantages {
		rescale(out)
	}
	for i := range out {
		if a := out[i].Advantage; math.Abs(a) > math.MaxFloat32 {
			return out, fmt.Errorf("credit: sequence %d has advantage %v, beyond float32: make rewards smaller, or have "+
				"advantages divided by the standard deviation or the batch's scale", i, a)
		}
	}
	return out, nil
}

// rescale divides advantages by the weighted mean of their absolute values. They are brought within 1 by a power of two
// first, so that the sum neither overflows nor loses digits.
func rescale(seqs []Sequence) {
	largest := 0.0
	for i := range seqs {
		largest = max(largest, math.Abs(seqs[i].Advantage))
	}
	if largest == 0 {
		return
	}
	_, exponent := math.Frexp(largest)
	var sum, total float64
	for i := range seqs {
		n := float64(seqs[i].NumTrained())
		seqs[i].Advantage = math.Ldexp(seqs[i].Advantage, -exponent)
		sum += math.Abs(seqs[i].Advantage) * seqs[i].Weight * n
		total += n
	}
	mean := sum / total
	for i := range seqs {
		seqs[i].Advantage /= mean
	}
}
