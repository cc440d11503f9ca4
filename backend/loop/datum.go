package loop

import (
	"fmt"
	"math"
	"slices"

	"github.com/goart-dev/art/grpo/credit"
)

// Datum is one sequence of tokens to train on: N ids that the model reads, and what it is to predict after each. Lists
// are per position; index i of all of them belongs to the token after Input[i]. For plain text, Targets are Input moved
// by one.
type Datum struct {
	// Input are the ids that the model reads, at least one.
	Input []int32
	// Targets are the ids whose logprobs count: that of Targets[i] after Input[:i+1]. NoTarget is none: the position is
	// not in the loss. Positions without a target, such as those of a prompt, cost less. With K they are [N, K], row by
	// row.
	Targets []int32
	// K is the number of targets of each position, for soft targets such as those of distillation; 0 is 1. More are for
	// [credit.CrossEntropy] only.
	K int
	// Weights multiply the loss of each target. nil is 1 for all. They may be negative.
	Weights []float32
	// Logprobs are those of Targets under the policy that sampled them, as in [art.Sample]. For losses with a ratio to it.
	Logprobs []float32
	// Advantages of Targets, for policy losses.
	Advantages []float32
}

// NoTarget is the target of a position that is not in the loss.
const NoTarget int32 = -1

// InLoss reports whether the i-th of Targets is in a loss, which metrics are of too: it is not NoTarget, its weight is
// not 0, and neither is its advantage where the loss is a multiple of that, as all named in [LossConfig] but
// [credit.CrossEntropy] and [credit.DRO] are. So the positions of a prompt are out whichever way they are marked.
func (d *Datum) InLoss(loss credit.Loss, i int) bool {
	if d.Targets[i] == NoTarget || d.Weights != nil && d.Weights[i] == 0 {
		return false
	}
	multiple := loss == credit.ImportanceSampling || loss == credit.PPO || loss == credit.CISPO
	return !multiple || d.Advantages[i] != 0
}

// ForwardResult is the result of a forward pass.
type ForwardResult struct {
	// Loss is the sum over all targets.
	Loss float64
	// Logprobs are those of the targets of each datum, under the weights of the training state; 0 for NoTarget.
	Logprobs [][]float32
	// Metrics are further ones that the backend measures, by the names in its documentation, of the targets for which
	// [Datum.InLoss] holds. May be nil.
	Metrics map[string]float64
	// NotFinite lists the data whose loss or gradient is NaN or infinite: all data, when those of each alone are finite
	// and only the sum overflows. The next OptimStep is then skipped.
	NotFinite []int
}

// problem says what is wrong with a datum, "" if nothing is.
func (d *Datum) problem(loss credit.Loss, policy bool) string {
	n, k := len(d.Input), max(d.K, 1)
	switch {
	case n == 0:
		return "has no input"
	case d.K < 0, k > 1 && loss != credit.CrossEntropy:
		return fmt.Sprintf("has K %d; more than 1 is for loss %q only", d.K, credit.CrossEntropy)
	case len(d.Targets)%n != 0 || len(d.Targets)/n != k: // n*k may overflow
		return fmt.Sprintf("has %d ids and %d targets, want %d for each id", n, len(d.Targets), k)
	case !policy && (d.Advantages != nil || d.Logprobs != nil):
		return fmt.Sprintf("has advantages or logprobs, which loss %q does not use", loss)
	}
	for _, list := range []struct {
		what   string
		values []float32
		needed bool
	}{{"weights", d.Weights, false}, {"logprobs", d.Logprobs, policy}, {"advantages", d.Advantages, policy}} {
		if got := len(list.values); got != n*k && (list.needed || list.values != nil) {
			return fmt.Sprintf("has %d %s, want %d", got, list.what, n*k)
		}
		notFinite := func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }
		if at := slices.IndexFunc(list.values, notFinite); at >= 0 {
			return fmt.Sprintf("has %s with %v at %d", list.what, list.values[at], at)
		}
	}
	if at := slices.IndexFunc(d.Targets, func(id int32) bool { return id < NoTarget }); at >= 0 {
		return fmt.Sprintf("has target %d at %d", d.Targets[at], at)
	}
	return ""
}
