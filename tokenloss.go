package art

import (
	"fmt"
	"maps"
	"slices"
)

// LossConfig are the options of a loss of [Model.ForwardBackward], by the keys of the Tinker API. Keys that are missing
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
// There is no mean: scale by weights, advantages or the learning rate. Other losses that the backend has
// ([LossProvider]) can be named too, and have no options.
type LossConfig map[string]float64

// tokenLosses are the named losses of a [Trainer], with their options and defaults.
var tokenLosses = map[Loss]struct {
	config LossConfig
	policy bool // it needs advantages and logprobs
}{
	LossCrossEntropy:       {},
	LossImportanceSampling: {policy: true},
	LossPPO:                {LossConfig{"clip_low_threshold": 0.8, "clip_high_threshold": 1.2}, true},
	LossCISPO:              {LossConfig{"clip_low_threshold": 0, "clip_high_threshold": 4}, true},
	LossDRO:                {LossConfig{"beta": 0.05}, true},
}

// TokenLosses lists the losses that every [Trainer] has.
func TokenLosses() []Loss {
	return []Loss{LossCrossEntropy, LossImportanceSampling, LossPPO, LossCISPO, LossDRO}
}

// fill returns a copy of c with the defaults of a loss, and adds what is wrong with it to p. own are further losses.
func (c LossConfig) fill(p *problems, loss Loss, own []Loss) LossConfig {
	traits, known := tokenLosses[loss]
	if !known && !slices.Contains(own, loss) {
		p.addf("unknown loss %q, want one of %q", loss, append(TokenLosses(), own...))
		return nil
	}
	out := maps.Clone(traits.config)
	for _, key := range slices.Sorted(maps.Keys(c)) {
		if _, ok := out[key]; !ok {
			p.addf("loss %q has no option %q, want one of %q", loss, key, slices.Sorted(maps.Keys(out)))
			continue
		}
		out[key] = c[key]
		p.check(finite(c[key]) && c[key] >= 0, "%s is %v, want a finite number >= 0", key, c[key])
	}
	lo, hi := out["clip_low_threshold"], out["clip_high_threshold"]
	p.check(lo <= hi, "clip_low_threshold is %v, above clip_high_threshold, %v", lo, hi)
	return out
}

// checkData adds what is wrong with data for a loss that the backend has.
func checkData(p *problems, data []Datum, loss Loss) {
	p.check(len(data) > 0, "there are no data")
	traits, known := tokenLosses[loss]
	for i := range data {
		if what := data[i].problem(loss, traits.policy || !known); what != "" {
			p.addf("datum %d %s", i, what)
		}
	}
}

// problem says what is wrong with a datum, "" if nothing is.
func (d *Datum) problem(loss Loss, policy bool) string {
	n, k := len(d.Input), max(d.K, 1)
	switch {
	case n == 0:
		return "has no input"
	case d.K < 0, k > 1 && loss != LossCrossEntropy:
		return fmt.Sprintf("has K %d; more than 1 is for loss %q only", d.K, LossCrossEntropy)
	case len(d.Targets) != n*k:
		return fmt.Sprintf("has %d ids and %d targets, want %d", n, len(d.Targets), n*k)
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
		if at := slices.IndexFunc(list.values, func(x float32) bool { return !finite(float64(x)) }); at >= 0 {
			return fmt.Sprintf("has %s with %v at %d", list.what, list.values[at], at)
		}
	}
	if at := slices.IndexFunc(d.Targets, func(id int32) bool { return id < NoTarget }); at >= 0 {
		return fmt.Sprintf("has target %d at %d", d.Targets[at], at)
	}
	return ""
}
