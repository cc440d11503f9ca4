package loop

import (
	"maps"
	"slices"

	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/problems"
)

// LossConfig are the options of a loss of [ForwardBackward], by the keys of the Tinker API. Keys that are missing
// have their defaults, and others are an error. With p the logprob of a target under the weights, q its
// [Datum].Logprobs, r = exp(p - q), A its advantage and w its weight, the losses are sums over all targets of w times
//
//	cross_entropy        -p
//	importance_sampling  -r·A
//	ppo                  -min(r·A, clip(r, lo, hi)·A)
//	cispo                -stop_gradient(clip(r, lo, hi))·A·p
//	dro                  -(p·A - beta/2·(p - q)²)
//
// where lo is clip_low_threshold, by default 0.8 of ppo and 0 of cispo; hi is clip_high_threshold, by default 1.2 and
// 4; and beta is 0.05 by default.
//
// [credit.Loss] has the sources of the formulas, and advice. There is no mean: scale by weights, advantages or the
// learning rate. Other losses that the backend has (driver.LossProvider) can be named too, and have no options.
type LossConfig map[string]float64

// tokenLosses are the named losses of a [Trainer], with their options and defaults.
var tokenLosses = map[credit.Loss]struct {
	config LossConfig
	policy bool // it needs advantages and logprobs
}{
	credit.CrossEntropy:       {},
	credit.ImportanceSampling: {policy: true},
	credit.PPO:                {LossConfig{"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}, true},
	credit.CISPO:              {LossConfig{"clip_low_threshold": 0, "clip_high_threshold": 4}, true},
	credit.DRO:                {LossConfig{"beta": 0.05}, true},
}

// TokenLosses lists the losses that every [Trainer] has.
func TokenLosses() []credit.Loss {
	return []credit.Loss{credit.CrossEntropy, credit.ImportanceSampling, credit.PPO, credit.CISPO, credit.DRO}
}

// fill returns a copy of c with the defaults of a loss, and adds what is wrong with it to p. own are further losses.
func (c LossConfig) fill(p *problems.List, loss credit.Loss, own []credit.Loss) LossConfig {
	traits, known := tokenLosses[loss]
	if !known && !slices.Contains(own, loss) {
		p.Addf("unknown loss %q, want one of %q", loss, append(TokenLosses(), own...))
		return nil
	}
	out := maps.Clone(traits.config)
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if _, ok := out[key]; !ok {
			p.Addf("loss %q has no option %q, want one of %q", loss, key, slices.Sorted(maps.Keys(out)))
			continue
		}
		out[key] = c[key]
		p.NotNegative(key, c[key])
	}
	lo, hi := out["clip_low_threshold"], out["clip_high_threshold"]
	p.Check(lo <= hi, "clip_low_threshold is %v, above clip_high_threshold, %v", lo, hi)
	return out
}
