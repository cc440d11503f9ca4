package agents_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/ruler"
)

func TestAlike(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Cancel order 12.", "cancel ORDER 12", true}, {"Cancel order 12.", "Cancel order 13.", false},
		{"Find the red lamp in my order", "Find the red lamp in the order", true},
		{"Book a room", "Cancel the trip", false}, {"", "", true}, {"Größe?", "grösse", false},
	} {
		if agents.Alike(c.a, c.b) != c.want || agents.Alike(c.b, c.a) != c.want {
			t.Errorf("%q and %q: want alike %v", c.a, c.b, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		texts []string
		want  float64
	}{
		{[]string{"a b", "a b", "c", "c"}, 0}, {[]string{"a", "b", "c"}, 1}, {[]string{"a b", "b c"}, 2.0 / 3},
	} {
		if got := agents.Spread(c.texts); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%q: %v, want %v", c.texts, got, c.want)
		}
	}
	if !math.IsNaN(agents.Spread([]string{"a"})) {
		t.Error("one text has a spread")
	}
}

func TestGoal(t *testing.T) {
	for _, c := range []struct {
		goal   agents.Goal
		scores []float64
		stop   bool
	}{
		{agents.Goal{Value: 0.5}, []float64{0.9}, false}, // the untrained model does not end it
		{agents.Goal{Value: 0.5}, []float64{0.1, 0.5}, true},
		{agents.Goal{Value: 0.5}, []float64{0.1, 0.9, 0.4}, false},
		{agents.Goal{Patience: 2}, []float64{0.1, 0.2, 0.2}, false},
		{agents.Goal{Patience: 2}, []float64{0.1, 0.2, 0.2, 0.1}, true},
		{agents.Goal{Patience: 2}, []float64{0.1, 0.2, 0.2, 0.3}, false},
		{agents.Goal{Patience: 1, MinGain: 0.2}, []float64{0.1, 0.2}, true},
		{agents.Goal{Patience: 2}, []float64{0.1, math.NaN(), math.NaN()}, true},
		{agents.Goal{}, []float64{0, 0, 0, 0, 0}, false}, {agents.Goal{Patience: 1}, nil, false},
	} {
		if why, stop := c.goal.Reached(c.scores); stop != c.stop || stop == (why == "") {
			t.Errorf("%+v, %v: %v, %q", c.goal, c.scores, stop, why)
		}
	}
}

// said is a trajectory of a scenario.
func said(scenario, text string) *art.Trajectory {
	t := art.NewTrajectory(art.User("Say something."), art.Assistant(text))
	t.Metadata[agents.ScenarioKey] = scenario
	return t
}

// Each pair is judged by itself, and those without a counterpart are told.
func TestVersus(t *testing.T) {
	longer := ruler.JudgeFunc(func(_ context.Context, items []ruler.Item) ([]ruler.Rating, error) {
		var out []ruler.Rating
		for _, item := range items {
			text := item.Trajectory.Messages[1].Content
			if text == "broken" {
				return nil, &art.Error{Op: "judge", Err: art.ErrInvalid}
			}
			out = append(out, ruler.Rating{ID: item.ID, Score: float64(len(text)) / 10})
		}
		return out, nil
	})
	judge := ruler.New(nil, &ruler.Options{Judges: []ruler.Judge{longer}})
	model := []*art.Trajectory{
		said("a", "aaaaa"), said("b", "b"), said("c", "ccc"), said("d", "dd"), said("e", "broken"), said("f", "f"),
	}
	control := []*art.Trajectory{
		said("c", "ccc"), said("b", "bbbbb"), said("a", "aa"), said("d", "ee"), said("e", "e"), said("g", "g"),
	}
	tally, err := agents.Versus(t.Context(), judge, model, control)
	if err != nil {
		t.Fatal(err)
	}
	if tally.Wins != 1 || tally.Losses != 1 || tally.Ties != 2 || tally.Failed != 1 || tally.UnmatchedModel != 1 ||
		tally.Unmatched != 1 || tally.Swayed != 0 || !strings.Contains(tally.Matches[4].Failure, "invalid") {
		t.Errorf("%v: %+v", tally, tally)
	}
	rate, low, high := tally.WinRate()
	if rate != 0.5 || math.Abs(low-0.15003899) > 1e-6 || math.Abs(high-0.84996101) > 1e-6 {
		t.Errorf("%v [%v, %v]", rate, low, high)
	}
	if _, err := agents.Versus(t.Context(), judge, model[4:5], control); err == nil {
		t.Error("a judge that fails everything is no error")
	}
}
