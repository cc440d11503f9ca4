package trainer

import (
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

// plainFunc is the loss of a batch in float64, from logprobs of package model. frozen are those that are taken for
// constants when it is differentiated.
type plainFunc func(batch []grpo.Sequence, logprobs, frozen [][]float32) float64

// testLoss is a loss, with its formula apart from the graph. Its value is the metric test/loss.
type testLoss struct {
	grpo.Loss
	plain plainFunc
}

func (l testLoss) Spec() grpo.LossSpec {
	spec := l.Loss.Spec()
	spec.Metrics = append(slices.Clone(spec.Metrics), grpo.Metric{Name: "test/loss", Reduction: grpo.MeanOverUpdates})
	return spec
}

func (l testLoss) Build(in grpo.LossInputs) (*Node, map[string]*Node) {
	loss, metrics := l.Loss.Build(in)
	metrics["test/loss"] = loss
	return loss, metrics
}

// losses are those of package grpo, and one that the trainer has never seen.
var losses = map[string]testLoss{
	"supervised": {grpo.SupervisedLoss{}, plainSupervised},
	"ppo":        {grpo.PolicyLoss{Loss: credit.PPO}, plainPolicy(grpo.PolicyLoss{Loss: credit.PPO})},
	"cispo":      {grpo.PolicyLoss{EpsilonHigh: ptr(0.4)}, plainPolicy(grpo.PolicyLoss{EpsilonHigh: ptr(0.4)})},
	"sequence":   {sequenceLoss{}, plainSequence},
}

func ptr(x float64) *float64 { return &x }

// overTokens is the mean over trained tokens of what f returns, weighted.
func overTokens(batch []grpo.Sequence, f func(i, j int) float64) float64 {
	sum := 0.0
	for i, s := range batch {
		for j, trained := range s.Trained {
			if trained {
				sum += s.Weight * f(i, j)
			}
		}
	}
	return sum / float64(credit.NumTrained(batch))
}

func plainSupervised(batch []grpo.Sequence, logprobs, _ [][]float32) float64 {
	return overTokens(batch, func(i, j int) float64 { return -float64(logprobs[i][j]) })
}

func plainPolicy(l grpo.PolicyLoss) plainFunc {
	lo, hi := credit.Policy(l).Bounds()
	return func(batch []grpo.Sequence, logprobs, frozen [][]float32) float64 {
		return overTokens(batch, func(i, j int) float64 {
			a, lp, old := batch[i].Advantage, float64(logprobs[i][j]), float64(batch[i].Logprobs[j])
			if l.Loss == credit.PPO {
				ratio := math.Exp(lp - old)
				return -min(ratio*a, max(lo, min(hi, ratio))*a)
			}
			return -max(lo, min(hi, math.Exp(float64(frozen[i][j])-old))) * a * lp
		})
	}
}

// sequenceLoss has one importance ratio for all tokens of a sequence, as GSPO has (Zheng et al. 2025,
// https://arxiv.org/abs/2507.18071), without its clipping:
//
//	ratio = exp(mean over the sequence of new - old)
//	loss  = Σ -ratio·A·w / denominator
type sequenceLoss struct{}

func (sequenceLoss) Validate() error { return nil }

func (sequenceLoss) Spec() grpo.LossSpec {
	ratio := grpo.Metric{Name: "test/ratio_max", Reduction: grpo.Maximum}
	return grpo.LossSpec{Key: "test sequence", Sampled: true, Metrics: []grpo.Metric{ratio}}
}

func (sequenceLoss) Build(in grpo.LossInputs) (*Node, map[string]*Node) {
	d := Mul(Sub(in.New, in.Old), in.Mask) // [N]
	n := in.New.Shape().Dim(0)
	same := ConvertDType(Equal(BroadcastToDims(in.Sequence, n, n),
		BroadcastToDims(TransposeAllAxes(in.Sequence, 1, 0), n, n)), d.DType()) // [N, N] whether two tokens are of one
	sum := func(x *Node) *Node { return ReduceSum(Mul(same, BroadcastToDims(ExpandAxes(x, 0), n, n)), 1) }
	ratio := Exp(Div(sum(d), MaxScalar(sum(in.Mask), 1))) // [N]
	return in.Mean(Neg(Mul(ratio, in.Advantage))), map[string]*Node{"test/ratio_max": ReduceAllMax(ratio)}
}

func plainSequence(batch []grpo.Sequence, logprobs, _ [][]float32) float64 {
	return overTokens(batch, func(i, _ int) float64 {
		sum := 0.0
		for j, trained := range batch[i].Trained {
			if trained {
				sum += float64(logprobs[i][j]) - float64(batch[i].Logprobs[j])
			}
		}
		return -math.Exp(sum/float64(batch[i].NumTrained())) * batch[i].Advantage
	})
}
