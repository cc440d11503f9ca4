package agents

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/interval"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/ruler"
)

// ScenarioKey is the key of [art.Trajectory].Metadata that names the scenario of a trajectory.
const ScenarioKey = "scenario"

// Match is one scenario of a comparison.
type Match struct {
	Scenario       string
	Model, Control *art.Trajectory
	// Pair is the verdict; nil when there is none, and then Failure says why.
	Pair    *ruler.Pair
	Failure string
}

// Tally is the result of a comparison with a control model.
type Tally struct {
	Matches                   []Match
	Wins, Ties, Losses        int
	Swayed                    int // verdicts that depended on the order
	Failed                    int // matches without a verdict
	UnmatchedModel, Unmatched int // trajectories of the model, and of the control, without one to compare with
}

// Versus compares the trajectories of a model with those of a control, pair by pair: both of the same scenario, by
// [ScenarioKey], judged in both orders. A rollout that failed has no trajectory, and its scenario no match. A match
// that could not be judged is a failure of the tally; only when none could be judged is that an error.
func Versus(ctx context.Context, judge *ruler.Ruler, model, control []*art.Trajectory) (*Tally, error) {
	t := matches(model, control)
	slots := make(chan struct{}, 4)
	var wait sync.WaitGroup
	for i := range t.Matches {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			m := &t.Matches[i]
			pair, err := judge.Pair(ctx, m.Model, m.Control)
			if err != nil {
				m.Failure = err.Error()
			}
			m.Pair = pair
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, m := range t.Matches {
		switch {
		case m.Pair == nil:
			t.Failed++
			continue
		case m.Pair.Outcome == 1:
			t.Wins++
		case m.Pair.Outcome == 0:
			t.Losses++
		default:
			t.Ties++
		}
		if m.Pair.Swayed {
			t.Swayed++
		}
	}
	if t.Failed == len(t.Matches) && t.Failed > 0 {
		return t, &art.Error{Op: "compare", Err: fmt.Errorf("no pair could be judged, of %d; the first: %s", t.Failed,
			t.Matches[0].Failure), Hint: "check the judge"}
	}
	return t, nil
}

// matches pairs trajectories by scenario, in the order of the model's.
func matches(model, control []*art.Trajectory) *Tally {
	t := &Tally{}
	rest := map[string][]*art.Trajectory{}
	for _, c := range control {
		rest[scenarioOf(c)] = append(rest[scenarioOf(c)], c)
		t.Unmatched++
	}
	for _, m := range model {
		id := scenarioOf(m)
		if len(rest[id]) == 0 {
			t.UnmatchedModel++
			continue
		}
		t.Matches = append(t.Matches, Match{Scenario: id, Model: m, Control: rest[id][0]})
		rest[id] = rest[id][1:]
		t.Unmatched--
	}
	return t
}

func scenarioOf(t *art.Trajectory) string { return fmt.Sprint(t.Metadata[ScenarioKey]) }

// WinRate is the share of matches that the model won, a tie counting half, with its 95 % confidence interval; see
// [interval.Share].
func (t *Tally) WinRate() (rate, low, high float64) {
	return interval.Share(float64(t.Wins)+float64(t.Ties)/2, float64(t.Wins+t.Ties+t.Losses))
}

// String is the tally on one line.
func (t *Tally) String() string {
	rate, low, high := t.WinRate()
	s := fmt.Sprintf("%d won, %d tied, %d lost: %.1f%% [%.1f, %.1f]", t.Wins, t.Ties, t.Losses, 100*rate, 100*low,
		100*high)
	for _, part := range []struct {
		n    int
		what string
	}{
		{t.Swayed, "by the order"}, {t.Failed, "not judged"}, {t.UnmatchedModel + t.Unmatched, "without a counterpart"},
	} {
		if part.n > 0 {
			s += fmt.Sprintf(", %d %s", part.n, part.what)
		}
	}
	return s
}

func (t *Tally) metrics() map[string]float64 {
	rate, low, high := t.WinRate()
	m := map[string]float64{"pairs": float64(len(t.Matches)), "pairs_failed": float64(t.Failed),
		"pairs_swayed": float64(t.Swayed)}
	if !math.IsNaN(rate) {
		m["win_rate"], m["win_rate_low"], m["win_rate_high"] = rate, low, high
	}
	return m
}

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
	if err := t.prepare(); err != nil {
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

func gain(old, now []*art.Trajectory, scenarios int) (g Gain) {
	m := matches(now, old)
	for _, pair := range m.Matches {
		g.Add(pair.Control.Metrics["solved"] == 1, pair.Model.Metrics["solved"] == 1)
	}
	g.Failed = scenarios - len(m.Matches)
	return g
}
