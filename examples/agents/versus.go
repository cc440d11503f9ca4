package agents

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/interval"
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

// metrics are what to log of the tally.
func (t *Tally) metrics() map[string]float64 {
	rate, low, high := t.WinRate()
	m := map[string]float64{"pairs": float64(len(t.Matches)), "pairs_failed": float64(t.Failed),
		"pairs_swayed": float64(t.Swayed)}
	if !math.IsNaN(rate) {
		m["win_rate"], m["win_rate_low"], m["win_rate_high"] = rate, low, high
	}
	return m
}
