package agents

import (
	"context"
	"fmt"
	"math"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/quantity"
)

// Gain is how many more scenarios one model solves than another.
type Gain struct {
	// Both, Better, Worse and Neither count scenarios: solved by both models, by the new one only, by the old one only,
	// and by none.
	Both, Better, Worse, Neither int
	// Failed counts scenarios in which a rollout of one of the models failed. They are in none of the other counts.
	Failed int
}

// N is the number of scenarios that were compared.
func (g Gain) N() int { return g.Both + g.Better + g.Worse + g.Neither }

// Add counts a scenario: whether the old model and the new one solve it.
func (g *Gain) Add(before, after bool) {
	switch {
	case before && after:
		g.Both++
	case after:
		g.Better++
	case before:
		g.Worse++
	default:
		g.Neither++
	}
}

// Shares are those of the scenarios that the old and the new model solve; NaN without scenarios.
func (g Gain) Shares() (before, after float64) {
	n := float64(g.N())
	return float64(g.Both+g.Worse) / n, float64(g.Both+g.Better) / n
}

// Interval is the difference of the two shares with its 95 % confidence interval for paired shares, the adjusted Wald
// interval of Agresti and Min (2005):
//
//	d ± z sqrt(b + c - (b - c)²/n) / n,   d = (b - c)/n
//
// where b and c are Better and Worse and n is N, after 1/2 is added to each of the four counts. value is the difference
// without that addition, NaN without scenarios.
func (g Gain) Interval() (value, low, high float64) {
	const z = 1.959963984540054 // the 97.5 % quantile of the normal distribution
	n, b, c := float64(g.N())+2, float64(g.Better)+0.5, float64(g.Worse)+0.5
	middle, half := (b-c)/n, z*math.Sqrt(b+c-(b-c)*(b-c)/n)/n
	return float64(g.Better-g.Worse) / float64(g.N()), max(-1, middle-half), min(1, middle+half)
}

// String is the gain on one line.
func (g Gain) String() string {
	before, after := g.Shares()
	value, low, high := g.Interval()
	s := fmt.Sprintf("%.1f%% solved before, %.1f%% after: %+.1f points [%+.1f, %+.1f] with 95%% confidence, %s",
		100*before, 100*after, 100*value, 100*low, 100*high, quantity.Of(g.N(), "scenario"))
	if g.Failed > 0 {
		s += fmt.Sprintf(", %d more failed", g.Failed)
	}
	return s
}

// Gain runs the same scenarios with a model of before and with the one that is trained, both greedily and with the same
// randomness of the environment, and compares which are solved. The rollouts must be Checked. Nothing is logged.
func (t *Training[S]) Gain(ctx context.Context, before *art.Model, scenarios []S) (Gain, error) {
	t.setDefaults()
	if err := t.validate(); err != nil {
		return Gain{}, err
	}
	if !t.Checked {
		err := fmt.Errorf("%w: there is no checker", art.ErrInvalid)
		return Gain{}, &art.Error{Op: "gain", Err: err, Hint: "use Compare, whose referee judges pairs"}
	}
	r := &trainingRun[S]{Training: t}
	old, err := r.greedy(ctx, before, scenarios)
	if err != nil {
		return Gain{}, fmt.Errorf("%s: %w", before.Name(), err)
	}
	now, err := r.greedy(ctx, t.Model, scenarios)
	if err != nil {
		return Gain{}, fmt.Errorf("%s: %w", t.Model.Name(), err)
	}
	return gain(old.Trajectories, now.Trajectories, len(scenarios)), nil
}

// gain pairs trajectories by scenario.
func gain(old, now []*art.Trajectory, scenarios int) (g Gain) {
	m := matches(now, old)
	for _, pair := range m.Matches {
		g.Add(pair.Control.Metrics["solved"] == 1, pair.Model.Metrics["solved"] == 1)
	}
	g.Failed = scenarios - len(m.Matches)
	return g
}
