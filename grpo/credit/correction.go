package credit

import (
	"cmp"
)

// CorrectionMethod says what is done with importance weights against what was sampled from.
type CorrectionMethod string

// Corrections, with r the importance weight of a token; see [Correction].
const (
	// CorrectTruncate multiplies the weight of a token by max(Low, min(r, High)), by default min(r, 2) (truncated
	// importance sampling, TIS: Yao et al. 2025, https://fengyao.notion.site/off-policy-rl). The one to begin with: every
	// token counts, and none too much.
	CorrectTruncate CorrectionMethod = "truncate"
	// CorrectMask multiplies it by r within Low and High, by default 0.5 and 5, and by 0 elsewhere (IcePop: Ling team
	// 2025, https://arxiv.org/abs/2510.18855). Where sampler and trainer differ a lot for a few tokens, as with mixtures
	// of experts.
	CorrectMask CorrectionMethod = "mask"
)

// Correction weighs tokens by r, how likely they are under the policy, relative to what they were sampled from: for
// samples of older steps, of settings that reshape the distribution, or of an engine with other numbers. With p the
// logprob before the first update, or stop_gradient(new) where a loss has no importance ratio, r = exp(p - behavior).
// Where loss/log_ratio_mean stays near 0, nothing needs it. grpo.Corrected has more.
type Correction struct {
	// Method is none by default: no correction.
	Method CorrectionMethod
	// Low and High bound the weights. Defaults 0 and 2 for CorrectTruncate, 0.5 and 5 for CorrectMask, as in their
	// sources. Closer to 1 is less noise and more bias.
	Low, High float64
	// Sequence takes one weight for a sequence, the product of those of its tokens (as verl's sequence level). Default
	// false. For short replies only: the variance grows with the length.
	Sequence bool
	// Behavior takes the distribution that was sampled from, after temperature, top-p and top-k (art.Sample.Sampled), in
	// place of the policy's own (art.Sample.Logprobs). Default false. For samples of a temperature other than 1; what
	// top-p and top-k cut off does not come back.
	Behavior bool
}

// WithDefaults returns a copy of c with its bounds filled in.
func (c Correction) WithDefaults() Correction {
	switch c.Method {
	case CorrectTruncate:
		c.High = cmp.Or(c.High, 2)
	case CorrectMask:
		c.Low, c.High = cmp.Or(c.Low, 0.5), cmp.Or(c.High, 5)
	}
	return c
}

// Validate lists every problem.
func (c Correction) Validate() error {
	var found problems
	checkName(&found, "correction", c.Method, CorrectTruncate, CorrectMask)
	found.check(c.Method != "" || c == Correction{}, "correction has options %+v and no method", c)
	d := c.WithDefaults()
	found.check(c.Method == "" || finite(d.Low) && finite(d.High) && d.Low >= 0 && d.Low < d.High,
		"correction is between %v and %v, want 0 <= low < high", d.Low, d.High)
	return found.err()
}

// Overlong lowers the reward of long trajectories, softly: by 0 up to Longest-Buffer sampled tokens, by Penalty above
// Longest, linearly between (DAPO, Yu et al. 2025, https://arxiv.org/abs/2503.14476). Where answers run into their
// limit. It counts all sampled tokens of an agent's episode, so long but necessary ones pay too. [Overlong.Of] has the
// formula.
type Overlong struct {
	// Longest is the number of sampled tokens of a trajectory above which the penalty is full; 0, the default, is off.
	Longest int
	// Buffer is the number of tokens over which the penalty rises, at most Longest. 0, the default, is a sudden penalty
	// above Longest. A fifth of Longest, as in the paper, tells answers apart before they are cut.
	Buffer int
	// Penalty defaults to 1, the size of a right answer's reward.
	Penalty float64
}

// withDefaults returns a copy of o with the penalty filled in where it is on.
func (o Overlong) withDefaults() Overlong {
	if o.Longest != 0 {
		o.Penalty = cmp.Or(o.Penalty, 1)
	}
	return o
}

// validate lists every problem.
func (o Overlong) validate() error {
	var found problems
	found.check(o.Longest >= 0, "overlong longest is %d, want >= 0", o.Longest)
	found.check(o.Longest != 0 || o == Overlong{}, "overlong has options %+v and no longest", o)
	found.check(o.Buffer >= 0 && o.Buffer <= max(o.Longest, 0), "overlong buffer is %d, want 0 to %d", o.Buffer, o.Longest)
	found.notNegative("overlong penalty", &o.Penalty)
	return found.err()
}

// Of is what is added to the reward of a trajectory of so many sampled tokens:
//
//	0                                                up to Longest - Buffer, or where it is off
//	-Penalty·(tokens - Longest + Buffer) / Buffer    up to Longest
//	-Penalty                                         above
//
// Source: DAPO (Yu et al. 2025, https://arxiv.org/abs/2503.14476), equation 13.
func (o Overlong) Of(tokens int) float64 {
	o = o.withDefaults()
	over := tokens - (o.Longest - o.Buffer)
	switch {
	case o.Longest == 0 || over <= 0:
		return 0
	case tokens > o.Longest:
		return -o.Penalty
	default:
		return o.Penalty * (-float64(over) / float64(o.Buffer))
	}
}
