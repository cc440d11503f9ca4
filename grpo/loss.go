package grpo

// Shapes: N trained tokens of a micro-batch, padded. [] is a scalar.

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// maxLogRatio bounds |new-old| before it is exponentiated: exp(20) = 4.9e8 times more likely than when sampled. Beyond
// it the ratio has no gradient.
const maxLogRatio = 20.0

// LossInputs are what a loss is computed from. All have the same floating-point dtype.
type LossInputs struct {
	New       *Node // [N] logprob of the token under the policy being trained
	Old       *Node // [N] logprob of the token under the policy that sampled it, see PolicyLoss
	Advantage *Node // [N]
	Weight    *Node // [N]
	Mask      *Node // [N] 1 for a token, 0 for padding, where the other inputs may hold anything, NaN included
	// Denominator is a scalar that the sum over tokens is divided by: the number of trained tokens of the whole batch
	// that one optimizer step sees (NumTrained). Losses and gradients of its micro-batches then add up to the batch's.
	Denominator *Node // []
}

// PolicyLoss builds the policy loss, a scalar to be minimised, and its metrics, through which no gradient flows. With
// A the advantage, w the weight and m the mask of a token,
//
//	d     = new - old
//	ratio = exp(clip(d, -20, 20))
//	L     = -min(ratio·A, clip(ratio, lo, hi)·A)             (LossPPO)
//	L     = -stop_gradient(clip(ratio, lo, hi))·A·new        (LossCISPO)
//	loss  = Σ L·w·m / denominator
//
// where lo = 1-Epsilon and hi = 1+EpsilonHigh. Importance sampling is by token. PPO takes the gradient away from tokens
// whose ratio has left the range in the direction of A; CISPO keeps every token and bounds its weight. A padded token
// adds nothing to the loss, the metrics or a gradient.
//
// New and Old are of the whole vocabulary at temperature 1, before temperature, top-p and top-k reshape what is sampled
// from. The ratio then compares policies: it is 1 on policy, and the bounds limit how far a policy moves from the one
// that sampled, whatever the settings. It does not turn an average over sampled tokens into one over the policy. With
// other settings than temperature 1, Σ is an average over the reshaped distribution, and tokens that top-p and top-k
// cut off are not in it. The logprob under the reshaped distribution as Old would correct for temperature, at the price
// of ratios that are off 1 on policy, where the bounds clip; and it cannot bring back what was cut off.
//
// With Old = StopGradient(New), Advantage 1 and LossCISPO, the loss is the negative log-likelihood of the tokens, which
// is what supervised training minimises.
//
// Sources: PPO (Schulman et al. 2017, https://arxiv.org/abs/1707.06347), CISPO (MiniMax-M1, 2025,
// https://arxiv.org/abs/2506.13585), and the token mean over packed sequences of OpenPipe's ART.
func PolicyLoss(cfg LossConfig, in LossInputs) (loss *Node, metrics LossMetrics) {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	in, real := unpad(in)
	lo, hi := cfg.Bounds()
	logRatio := Sub(in.New, in.Old)                                    // [N]
	ratio := Exp(ClipScalar(logRatio, -maxLogRatio, maxLogRatio))      // [N]
	perToken := tokenLoss(cfg, in, ratio, ClipScalar(ratio, lo, hi))   // [N]
	loss = Div(ReduceAllSum(Mul(perToken, in.Weight)), in.Denominator) // []
	return loss, lossMetrics(loss, in, logRatio, ratio, real, lo, hi)
}

// unpad replaces everything at padded tokens by 0, so that garbage there reaches neither value nor gradient (0·NaN is
// NaN, a selection is not). A padded token is then an on-policy one of advantage and weight 0. real is [N], boolean.
func unpad(in LossInputs) (clean LossInputs, real *Node) {
	n := in.New.Shape().Dim(0)
	for _, x := range []*Node{in.New, in.Old, in.Advantage, in.Weight, in.Mask} {
		x.AssertDims(n)
	}
	in.Denominator.AssertScalar()
	real = GreaterThan(in.Mask, ZerosLike(in.Mask))
	zero := ScalarZero(in.New.Graph(), in.New.DType())
	for _, x := range []**Node{&in.New, &in.Old, &in.Advantage, &in.Weight} {
		*x = Where(real, *x, zero)
	}
	return in, real
}

// tokenLoss builds L [N] from ratio [N] and clipped [N], the ratio within bounds.
func tokenLoss(cfg LossConfig, in LossInputs, ratio, clipped *Node) *Node {
	if cfg.loss() == LossPPO {
		return Neg(Min(Mul(ratio, in.Advantage), Mul(clipped, in.Advantage)))
	}
	return Neg(Mul(Mul(StopGradient(clipped), in.Advantage), in.New))
}
