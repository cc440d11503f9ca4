package grpo

// Shapes: N trained tokens of a micro-batch, padded. [] is a scalar.

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/grpo/credit"
)

// maxLogRatio bounds |new-old| before it is exponentiated: exp(20) = 4.9e8 times more likely than when sampled. Beyond
// it the ratio has no gradient.
const maxLogRatio = 20.0

// PolicyLoss is the loss of tokens that a policy sampled. The zero value is the default. With A the advantage and w the
// weight of a token, and m the mean of d over the trained tokens of its sequence,
//
//	d     = new - old
//	ratio = exp(clip(d, -20, 20))                            (credit.LevelToken; Level has the others)
//	a     = A - KimiTau·stop_gradient(d)
//	L     = -stop_gradient(clip(ratio, lo, hi))·a·new        (CISPO)
//	L     = -min(ratio·a, clip(ratio, lo, hi)·a)             (PPO, GRPO, credit.DrGRPO, DAPO, GSPO)
//	L     = min(L, -DualClip·a)                              (the same where a < 0, if DualClip is set)
//	L     = -ratio·a                                         (credit.ImportanceSampling)
//	L     = -a·new                                           (Reinforce)
//	L     = -(A·new - DROBeta/2·d²)                          (DRO)
//	L     = -new where A > 0, 0 elsewhere                    (credit.CrossEntropy)
//	L     = 0 where ratio < lo or ratio > hi                 (MaskRatio)
//	loss  = Σ L·w / denominator
//
// where lo = 1-Epsilon and hi = 1+EpsilonHigh. PPO takes the gradient away from tokens whose ratio has left the range
// in the direction of A; CISPO keeps every token and bounds its weight.
//
// New and old are of the whole vocabulary at temperature 1, before temperature, top-p and top-k reshape what is sampled
// from, so that the ratio compares policies, and Σ is an average over the reshaped distribution: Epsilon of
// art.TrainConfig says more. The logprob under that distribution as old would correct for temperature, at the price of
// ratios that are off 1 on policy, where the bounds clip; and it cannot bring back what top-p and top-k cut off.
// [Corrected] does that apart from the bounds.
//
// Its metrics, means over trained tokens unless they say otherwise, are
//
//	loss/policy            the loss, mean over optimizer steps
//	loss/entropy           -new: an estimate of the policy's entropy while it is close to the one that sampled, nats
//	loss/kl_old_new        exp(d) - 1 - d: the k3 estimate of KL(old ‖ new), never negative, nats
//	loss/clipped_fraction  fraction of tokens whose ratio lies outside of the bounds, where there are bounds
//	loss/log_ratio_mean    |d|, nats: what the importance ratio is exp of, from whatever cause
//	loss/log_ratio_max     maximum of |d|, nats
//
// [credit.Loss] and [credit.Level] have the sources, and say which one to take. Others: dual clip (Ye et al. 2019,
// https://arxiv.org/abs/1912.09729), KimiTau (Kimi K2, 2025, https://arxiv.org/abs/2507.20534), and MaskRatio and the
// token mean over packed sequences of OpenPipe's ART. Options, with defaults and checks, are those of [credit.Policy].
type PolicyLoss credit.Policy

// Validate lists every problem.
func (l PolicyLoss) Validate() error { return credit.Policy(l).Validate() }

// Build implements [Loss].
func (l PolicyLoss) Build(in LossInputs) (loss *Node, metrics map[string]*Node) {
	l = l.withDefaults()
	logRatio := Sub(in.New, in.Old) // [N]
	ratio := l.ratio(in, logRatio)  // [N]
	perToken := l.perToken(in, logRatio, ratio)
	if l.MaskRatio {
		perToken = Where(l.outside(ratio), ZerosLike(perToken), perToken)
	}
	loss = in.Mean(perToken) // []
	return loss, l.metrics(loss, in, logRatio, ratio)
}

// withDefaults returns the loss with its defaults, and PPO's name where it has that form: its relatives differ in their
// bounds, and in what is outside of a token's loss, advantages and weights.
func (l PolicyLoss) withDefaults() PolicyLoss {
	p := credit.Policy(l).WithDefaults()
	if p.Surrogate() {
		p.Loss = credit.PPO
	}
	return PolicyLoss(p)
}

func boundedExp(x *Node) *Node { return Exp(ClipScalar(x, -maxLogRatio, maxLogRatio)) }

func (l PolicyLoss) ratio(in LossInputs, logRatio *Node) *Node {
	switch l.Level {
	case credit.LevelSequence:
		return boundedExp(in.SequenceMean(logRatio))
	case credit.LevelAverage:
		return MulScalar(Add(boundedExp(logRatio), boundedExp(in.SequenceMean(logRatio))), 0.5)
	case credit.LevelGeometric:
		return boundedExp(MulScalar(Add(logRatio, in.SequenceMean(logRatio)), 0.5))
	default:
		return boundedExp(logRatio)
	}
}

func (l PolicyLoss) perToken(in LossInputs, logRatio, ratio *Node) *Node {
	a := in.Advantage
	if l.KimiTau != 0 {
		a = Sub(a, MulScalar(StopGradient(logRatio), l.KimiTau))
	}
	lo, hi := credit.Policy(l).Bounds()
	switch l.Loss {
	case credit.CISPO:
		return Neg(Mul(Mul(StopGradient(ClipScalar(ratio, lo, hi)), a), in.New))
	case credit.PPO:
		loss := Neg(Min(Mul(ratio, a), Mul(ClipScalar(ratio, lo, hi), a)))
		if l.DualClip == 0 {
			return loss
		}
		return Where(LessThan(a, ZerosLike(a)), Min(loss, MulScalar(a, -l.DualClip)), loss)
	case credit.ImportanceSampling:
		return Neg(Mul(ratio, a))
	case credit.Reinforce:
		return Neg(Mul(a, in.New))
	case credit.DRO:
		return Sub(MulScalar(Mul(logRatio, logRatio), l.DROBeta/2), Mul(a, in.New))
	case credit.CrossEntropy:
		return Where(GreaterThan(a, ZerosLike(a)), Neg(in.New), ZerosLike(in.New))
	}
	panic(fmt.Sprintf("grpo: there is no loss %q", l.Loss)) // Validate has refused it
}

// outside builds [N], whether the ratio lies outside of the bounds.
func (l PolicyLoss) outside(ratio *Node) *Node {
	lo, hi := credit.Policy(l).Bounds()
	g, dtype := ratio.Graph(), ratio.DType()
	return LogicalOr(LessThan(ratio, Scalar(g, dtype, lo)), GreaterThan(ratio, Scalar(g, dtype, hi)))
}

// Spec implements [Loss].
func (l PolicyLoss) Spec() LossSpec {
	l = l.withDefaults()
	lo, hi := credit.Policy(l).Bounds()
	spec := LossSpec{
		Key: fmt.Sprintf("policy %s %v %v %s %v %t %v %v", l.Loss, lo, hi, l.Level, l.DualClip, l.MaskRatio, l.KimiTau,
			l.DROBeta),
		Sampled: true,
	}
	for _, m := range policyMetrics {
		if m.Name != clippedFraction || credit.Policy(l).Bounded() {
			spec.Metrics = append(spec.Metrics, m)
		}
	}
	return spec
}

// clippedFraction is the metric that losses without bounds do not have.
const clippedFraction = "loss/clipped_fraction"

var policyMetrics = []Metric{
	{Name: "loss/policy", Reduction: MeanOverUpdates, Formula: "the loss, mean over the optimizer steps",
		Healthy: "near 0; that it falls says nothing"},
	{Name: "loss/entropy", Formula: "mean of -logprob over the trained tokens: an estimate of the entropy", Unit: "nats",
		Healthy: "falls slowly; near 0 nothing is explored any more"},
	{Name: "loss/kl_old_new", Formula: "mean of exp(d) - 1 - d, d the log-ratio: an estimate of KL(old, new)",
		Unit: "nats", Healthy: "below 0.05"},
	{Name: clippedFraction, Formula: "trained tokens whose importance ratio lies outside of the bounds",
		Healthy: "below 0.2"},
	{Name: "loss/log_ratio_mean", Formula: "mean of |d|, d = log(new / old probability), over updates and tokens",
		Unit: "nats", Healthy: "below 0.1"},
	{Name: "loss/log_ratio_max", Reduction: Maximum, Formula: "maximum of |d|", Unit: "nats"},
}

// metrics builds the metrics, each []. logRatio and ratio are [N]; for padding they are 0 and 1.
func (l PolicyLoss) metrics(loss *Node, in LossInputs, logRatio, ratio *Node) map[string]*Node {
	distance, ofToken := Abs(logRatio), ratio
	if l.Level != credit.LevelToken {
		ofToken = boundedExp(logRatio)
	}
	out := map[string]*Node{
		"loss/policy":         loss,
		"loss/entropy":        ReduceAllSum(Neg(in.New)),
		"loss/kl_old_new":     ReduceAllSum(k3(logRatio, ofToken)),
		"loss/log_ratio_mean": ReduceAllSum(distance),
		"loss/log_ratio_max":  ReduceAllMax(distance),
	}
	if credit.Policy(l).Bounded() {
		out[clippedFraction] = ReduceAllSum(ConvertDType(l.outside(ratio), ratio.DType()))
	}
	return out
}

// k3 builds exp(d) - 1 - d [N] from d and r = exp(d); for small d by its series, because the difference would cancel:
// at d = 1e-4 it is 5e-9, a tenth of the rounding of 1.
//
// Source: J. Schulman, Approximating KL Divergence, 2020, http://joschu.net/blog/kl-approx.html.
func k3(d, r *Node) *Node {
	series := Mul(Mul(d, d), AddScalar(Mul(d, AddScalar(Mul(d, AddScalar(MulScalar(d, 1.0/120), 1.0/24)), 1.0/6)), 1.0/2))
	exact := Sub(MinusOne(r), d)
	return Where(LessThan(Abs(d), Scalar(d.Graph(), d.DType(), 0.1)), series, exact)
}
