package grpo

import (
	"fmt"
	"math"
	"slices"
)

// NormalizeConfig says how a batch is normalised. The zero value is the default.
type NormalizeConfig struct {
	// Advantages divides advantages by their mean absolute value, so that the size of a step does not depend on the
	// size of rewards. nil is true.
	Advantages *bool
}

// Normalize returns the sequences of one batch with weights and advantages set; the ones given stay as they are. With
// T(t) the number of trained tokens of trajectory t, over all its histories, and means over all trained tokens of the
// batch,
//
//	w  = 1 / T(t)               (each trajectory counts once, however long it is)
//	w /= mean(w)
//	A /= mean(|A|·w)            (unless Advantages is false, or all A are 0)
//
// so that Σ w and Σ |A|·w over trained tokens both equal their number. A weight that is already set is overwritten.
// An advantage beyond float32, in which losses are computed, is an error.
//
// Source: OpenPipe's ART (without its 1e-6 in the denominators).
func Normalize(seqs []Sequence, cfg NormalizeConfig) ([]Sequence, error) {
	out := slices.Clone(seqs)
	for i := range out {
		out[i].Weight = 0
	}
	if err := validateAll(out); err != nil {
		return nil, err
	}
	weigh(out)
	if cfg.Advantages == nil || *cfg.Advantages {
		rescale(out)
	}
	return out, checkRange(out)
}

// checkRange reports an advantage that float32 does not hold.
func checkRange(seqs []Sequence) error {
	for i := range seqs {
		if a := seqs[i].Advantage; math.Abs(a) > math.MaxFloat32 {
			return fmt.Errorf("grpo: sequence %d has advantage %v, beyond float32: make rewards smaller, or have advantages "+
				"divided by the standard deviation or the batch's scale", i, a)
		}
	}
	return nil
}

// weigh sets weights. The mean of 1/T over N trained tokens of K trajectories is K/N.
func weigh(seqs []Sequence) {
	tokens := map[int]int{} // trained tokens by trajectory
	total := 0
	for i := range seqs {
		n := seqs[i].NumTrained()
		tokens[seqs[i].Trajectory] += n
		total += n
	}
	for i := range seqs {
		seqs[i].Weight = float64(total) / (float64(len(tokens)) * float64(tokens[seqs[i].Trajectory]))
	}
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
