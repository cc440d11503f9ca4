package credit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// maxLogprob is the largest logprob that is accepted: a log-softmax may exceed 0 by rounding, but a probability passed
// by mistake exceeds it by far more.
const maxLogprob = 1e-3

// Sequence is one history of one trajectory, tokenised. IDs[i] is predicted from IDs[:i].
type Sequence struct {
	IDs        []int32   // [S] tokens of the whole history
	Trained    []bool    // [S] whether the token is in the loss; never the first
	Logprobs   []float32 // [S] logprob under the policy that sampled it, in nats; read where Trained only
	Staleness  []int     // [S] steps from that policy to the one being trained; nil is 0 for all
	Old        []float32 // [S] logprob that importance ratios are taken against; nil is Logprobs
	Behavior   []float32 // [S] logprob that a Correction is taken against, see there; nil is Logprobs
	Reference  []float32 // [S] logprob under the policy that a Penalty keeps close to; nil is none
	Advantage  float64   // of its trajectory
	Shaping    []float64 // [S] added to the advantage of a token; nil is 0 for all
	Weight     float64   // of each trained token; set by Normalize
	Weights    []float64 // [S] multiply Weight; nil is 1 for all; a token of 0 is in neither loss nor metrics
	Targets    []int32   // [S] ids whose logprobs are trained, where they are others than IDs; nil is IDs
	Trajectory int       // index of the trajectory in the batch; histories of one trajectory share it
}

// NumTrained returns the number of trained tokens.
func (s *Sequence) NumTrained() int {
	n := 0
	for _, trained := range s.Trained {
		if trained {
			n++
		}
	}
	return n
}

// NumInputs returns the number of leading tokens that the model must read to predict every trained one. What comes
// from the last trained token on predicts nothing, so package grpo leaves it out.
func (s *Sequence) NumInputs() int {
	for i, trained := range slices.Backward(s.Trained) {
		if trained {
			return i
		}
	}
	return 0
}

// NumTrained returns the number of trained tokens of a batch.
func NumTrained(seqs []Sequence) int {
	n := 0
	for i := range seqs {
		n += seqs[i].NumTrained()
	}
	return n
}

// Validate lists every way in which the sequence cannot be trained on.
func (s *Sequence) Validate() error {
	if len(s.Trained) != len(s.IDs) || len(s.Logprobs) != len(s.IDs) {
		return fmt.Errorf("credit: sequence has %d ids, %d trained marks and %d logprobs; all three must be per token",
			len(s.IDs), len(s.Trained), len(s.Logprobs))
	}
	for _, list := range []struct {
		what string
		len  int
	}{
		{"staleness values", len(s.Staleness)}, {"old logprobs", len(s.Old)}, {"behavior logprobs", len(s.Behavior)},
		{"reference logprobs", len(s.Reference)}, {"shaping values", len(s.Shaping)}, {"weights", len(s.Weights)},
		{"targets", len(s.Targets)},
	} {
		if list.len != 0 && list.len != len(s.IDs) {
			return fmt.Errorf("credit: sequence has %d ids and %d %s; both must be per token", len(s.IDs), list.len, list.what)
		}
	}
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("credit: sequence "+format, args...)) }
	if s.NumTrained() == 0 {
		fail("has no trained token")
	} else if s.Trained[0] {
		fail("trains its first token, which nothing predicts")
	}
	if !finite(s.Advantage) {
		fail("has advantage %v", s.Advantage)
	}
	if !finite(s.Weight) || s.Weight < 0 {
		fail("has weight %v", s.Weight)
	}
	if s.Trajectory < 0 {
		fail("has trajectory index %d", s.Trajectory)
	}
	s.validateTokens(fail)
	return errors.Join(errs...)
}

// validateTokens reports the first negative id, and the first invalid number of each list.
func (s *Sequence) validateTokens(fail func(format string, args ...any)) {
	if i := slices.IndexFunc(s.IDs, func(id int32) bool { return id < 0 }); i >= 0 {
		fail("has id %d at %d", s.IDs[i], i)
	}
	for _, list := range [][]float32{s.Logprobs, s.Old, s.Behavior, s.Reference} {
		for i, logprob := range list {
			if s.Trained[i] && !(finite(float64(logprob)) && logprob <= maxLogprob) {
				fail("has logprob %v at trained token %d; it must be finite and at most 0", logprob, i)
				break
			}
		}
	}
	for i, id := range s.Targets {
		if s.Trained[i] && id < 0 {
			fail("has target %d at %d", id, i)
			break
		}
	}
	for _, list := range []struct {
		what   string
		values []float64
	}{{"shaping", s.Shaping}, {"weight", s.Weights}} {
		for i, x := range list.values {
			if s.Trained[i] && !finite(x) {
				fail("has %s %v at trained token %d; it must be finite", list.what, x, i)
				break
			}
		}
	}
}

// ValidateAll validates every sequence and says which one fails.
func ValidateAll(seqs []Sequence) error {
	var errs []error
	for i := range seqs {
		if err := seqs[i].Validate(); err != nil {
			errs = append(errs, fmt.Errorf("sequence %d: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func at[T any](list []T, i int, missing T) T {
	if list == nil {
		return missing
	}
	return list[i]
}

// Split shuffles the units of a batch and cuts it into n parts whose numbers of units differ by at most one. One part
// is the batch as it is.
func Split(units [][]Sequence, n int, rng *rand.Rand) [][]Sequence {
	n = min(n, len(units))
	if n == 1 {
		return [][]Sequence{slices.Concat(units...)}
	}
	order := rng.Perm(len(units))
	parts := make([][]Sequence, n)
	for i, at := range order {
		parts[i*n/len(order)] = append(parts[i*n/len(order)], units[at]...)
	}
	return parts
}
