package ruler

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/quantity"
)

// Report is what [Check] finds. Fractions are from 0 to 1; what has no value is NaN.
type Report struct {
	Groups, Trajectories int
	Failed               int     // groups that could not be judged
	Mean                 float64 // of the scores
	Spread               float64 // mean over the groups of the standard deviation of their scores
	Ties                 float64 // fraction of the pairs of a group that have equal scores
	ZeroVariance         float64 // fraction of the groups without any difference: nothing can be learned from them
	// VoteAgreement is Kendall's tau between the rankings of pairs of votes, mean over the groups: 1 is the same order, 0
	// no relation. Options ask for one vote by default; Check asks for two at least.
	VoteAgreement float64
	// RewardAgreement is Kendall's tau-b between scores and the rewards that the groups had.
	RewardAgreement float64
	// Length is Kendall's tau-b between scores and the length of what the model wrote: far from 0, the judge may see
	// little more than length.
	Length float64
	Usage  Usage
	Err    error // of the first group that could not be judged
}

// Check tries a judge with a rubric on a few groups, such as stored ones, before money is spent on training.
func Check(ctx context.Context, judge *art.Model, groups []*art.TrajectoryGroup, opts *Options) (*Report, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	o.Votes, o.OnFailure, o.TiesOnly = max(o.Votes, 2), Fail, false
	r := New(judge, &o)
	if r.err != nil {
		return nil, r.err
	}
	report := &Report{}
	var scores, spreads, ties, flat, agreement, rewards, lengths mean
	for _, g := range groups {
		if g == nil {
			continue
		}
		judged := g.Clone()
		judged.Trajectories = slices.DeleteFunc(judged.Trajectories, func(t *art.Trajectory) bool { return t == nil })
		if len(judged.Trajectories) == 0 {
			continue
		}
		report.Groups++
		v, err := r.judge(ctx, judged)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			report.Failed, report.Err = report.Failed+1, cmp.Or(report.Err, err)
			continue
		}
		before := rewardsOf(judged)
		v.apply(judged)
		after := rewardsOf(judged)
		report.Trajectories += len(after)
		for _, s := range after {
			scores.add(s)
		}
		spreads.add(deviation(after))
		ties.add(tied(after))
		flat.add(truth(!rewardsDiffer(judged)))
		agreement.add(v.agreement())
		rewards.add(tau(before, after))
		lengths.add(tau(lengthsOf(judged), after))
	}
	report.Mean, report.Spread = scores.value(), spreads.value()
	report.Ties, report.ZeroVariance = ties.value(), flat.value()
	report.VoteAgreement, report.RewardAgreement, report.Length = agreement.value(), rewards.value(), lengths.value()
	report.Usage = r.Usage()
	return report, nil
}

// String writes the report for people, with what is worrying about it.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %d failed; %s, %s\n", quantity.Of(r.Groups, "group"),
		quantity.Of(r.Trajectories, "trajectory"), r.Failed, quantity.Of(r.Usage.Calls, "call"),
		quantity.Of(r.Usage.PromptTokens+r.Usage.CompletionTokens, "token"))
	fmt.Fprintf(&b, "score %.2f, spread in a group %.2f, tied pairs %.0f %%, groups without differences %.0f %%\n", r.Mean,
		r.Spread, 100*r.Ties, 100*r.ZeroVariance)
	fmt.Fprintf(&b, "agreement: of votes %.2f, with the reward %.2f, with length %.2f (Kendall's tau)\n", r.VoteAgreement,
		r.RewardAgreement, r.Length)
	add := func(bad bool, text string) {
		if bad {
			b.WriteString("! " + text + "\n")
		}
	}
	add(r.Failed > 0, fmt.Sprintf("the first failure: %v", r.Err))
	add(r.ZeroVariance > 0.3, "many groups have no differences: harder scenarios, more criteria, or a finer rubric")
	add(r.Spread < 0.05, "scores hardly differ: the rubric does not tell these trajectories apart")
	add(r.VoteAgreement < 0.5, "votes disagree: ask for more of them, say more in the rubric, or take a stronger judge")
	add(r.Length > 0.7, "longer replies score higher throughout: is that what is wanted?")
	add(r.RewardAgreement < 0, "the judge ranks against the reward")
	return b.String()
}

// agreement is the mean of tau over pairs of votes.
func (v *verdict) agreement() float64 {
	var m mean
	for i := range v.votes {
		for j := range i {
			a, b := make([]float64, len(v.list)), make([]float64, len(v.list))
			for k := range v.list {
				a[k], b[k] = v.votes[i].rating[k].score, v.votes[j].rating[k].score
			}
			m.add(tau(a, b))
		}
	}
	return m.value()
}

func rewardsOf(g *art.TrajectoryGroup) []float64 {
	out := make([]float64, len(g.Trajectories))
	for i, t := range g.Trajectories {
		out[i] = t.Reward
	}
	return out
}

// lengthsOf are the characters that the assistant wrote.
func lengthsOf(g *art.TrajectoryGroup) []float64 {
	out := make([]float64, len(g.Trajectories))
	for i, t := range g.Trajectories {
		for _, h := range t.Histories() {
			for j := range h.Messages {
				if h.Messages[j].Role == art.RoleAssistant {
					out[i] += float64(len(h.Messages[j].Content))
				}
			}
		}
	}
	return out
}

// tau is Kendall's tau-b, (concordant - discordant) / sqrt((pairs - ties in a) (pairs - ties in b)); NaN where one of
// them has no order.
func tau(a, b []float64) float64 {
	var both, inA, inB float64
	for i := range a {
		for j := range i {
			x, y := sign(a[i]-a[j]), sign(b[i]-b[j])
			both, inA, inB = both+x*y, inA+x*x, inB+y*y
		}
	}
	return both / math.Sqrt(inA*inB)
}

func sign(x float64) float64 {
	switch {
	case x > 1e-12:
		return 1
	case x < -1e-12:
		return -1
	}
	return 0
}

// tied is the fraction of pairs that are equal; NaN without pairs.
func tied(values []float64) float64 {
	equal, pairs := 0.0, 0.0
	for i := range values {
		for j := range i {
			pairs++
			equal += truth(sign(values[i]-values[j]) == 0)
		}
	}
	return equal / pairs
}

func truth(ok bool) float64 {
	if ok {
		return 1
	}
	return 0
}

func deviation(values []float64) float64 {
	var center, square mean
	for _, v := range values {
		center.add(v)
	}
	for _, v := range values {
		square.add((v - center.value()) * (v - center.value()))
	}
	return math.Sqrt(square.value())
}

// mean is a running mean without NaN.
type mean struct{ sum, n float64 }

func (m *mean) add(x float64) {
	if !math.IsNaN(x) {
		m.sum, m.n = m.sum+x, m.n+1
	}
}

func (m *mean) value() float64 { return m.sum / m.n }
