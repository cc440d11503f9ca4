package credit

import (
	"fmt"
	"slices"
)

// ShapeByKL returns the sequences of a normalised batch with a penalty for moving away from a reference in their
// advantages; the ones given stay as they are. With k the [Estimator] of a token, from d = old - reference, and mean k
// over all trained tokens of the batch, which it returns,
//
//	shaping = strength·(mean k - k)
//
// so that the mean advantage does not change: tokens that are further away than others become less likely. Unlike a
// term of the loss it is clipped with the advantage and has no gradient of its own. Take it where a reward can be
// gamed; strength is usually 0.001 to 0.05, for advantages of mean 1. K1 is usual; "" is K1. Every sequence needs
// reference logprobs. Old are those of the policy before its update where Sequence.Old is set, else those of the
// sampler.
//
// Source: OpenPipe's ART (kl_penalty_coef).
func ShapeByKL(seqs []Sequence, strength float64, estimator Estimator) (shaped []Sequence, mean float64, err error) {
	if err := estimator.Validate(); err != nil {
		return nil, 0, err
	}
	if !(finite(strength) && strength >= 0) {
		return nil, 0, fmt.Errorf("credit: KL coefficient is %v, it must be finite and not negative", strength)
	}
	if err := ValidateAll(seqs); err != nil {
		return nil, 0, err
	}
	shaped = slices.Clone(seqs)
	for i := range shaped {
		s := &shaped[i]
		if s.Reference == nil {
			return nil, 0, fmt.Errorf("credit: sequence %d has no reference logprobs", i)
		}
		s.Shaping = make([]float64, len(s.IDs))
		for j, trained := range s.Trained {
			if trained {
				s.Shaping[j] = estimator.value(float64(at(s.Old, j, s.Logprobs[j])) - float64(s.Reference[j]))
				mean += s.Shaping[j]
			}
		}
	}
	mean /= float64(max(NumTrained(seqs), 1))
	for i := range shaped {
		for j, trained := range shaped[i].Trained {
			if trained {
				shaped[i].Shaping[j] = strength * (mean - shaped[i].Shaping[j])
			}
		}
	}
	return shaped, mean, nil
}
