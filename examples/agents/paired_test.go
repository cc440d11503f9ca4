package agents_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// Values by hand: n = 100 with 20 better and 5 worse is d = 15/102 around 0.147, and a half width of
// 1.96 sqrt(26 - 225/102)/102.
func TestGain_Interval(t *testing.T) {
	for _, c := range []struct {
		gain             agents.Gain
		value, low, high float64
	}{
		{agents.Gain{Both: 40, Better: 20, Worse: 5, Neither: 35}, 0.15, 0.0533279, 0.2407897},
		{agents.Gain{Both: 5, Neither: 5}, 0, -0.163330, 0.163330},
		{agents.Gain{Better: 2}, 1, -0.1929519, 1},
	} {
		value, low, high := c.gain.Interval()
		if math.Abs(value-c.value)+math.Abs(low-c.low)+math.Abs(high-c.high) > 1e-5 {
			t.Errorf("%v: %v [%v, %v]", c.gain, value, low, high)
		}
	}
}

// The interval has the true difference in 95 % of experiments.
func TestGain_Coverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const experiments = 4000
	for _, p := range []struct{ better, worse float64 }{{0.3, 0.1}, {0.05, 0.02}, {0.5, 0}} {
		covered := 0
		for range experiments {
			var g agents.Gain
			for range 120 {
				switch u := rng.Float64(); {
				case u < p.better:
					g.Better++
				case u < p.better+p.worse:
					g.Worse++
				default:
					g.Both++
				}
			}
			if _, low, high := g.Interval(); low <= p.better-p.worse && p.better-p.worse <= high {
				covered++
			}
		}
		if share := float64(covered) / experiments; share < 0.935 {
			t.Errorf("%+v: %.3f of the intervals have the difference", p, share)
		}
	}
}

// Both models get the same scenarios, and a rollout that failed is in no pair.
func TestGain_Pairs(t *testing.T) {
	b := &arttest.Backend{Reply: func(_ context.Context, m *art.Model, r *art.ChatRequest) (art.Message, error) {
		return art.Assistant(m.Name() + " " + r.Messages[0].Content), nil
	}}
	old, trained := art.NewModel("old", nil), art.NewModel("new", nil)
	for _, m := range []*art.Model{old, trained} {
		if err := m.Register(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	solved := map[string]float64{"new a": 1, "old a": 1, "new b": 1, "old c": 1, "new e": 1, "old e": 1}
	training := &agents.Training[string]{
		Model: trained, Checked: true, Train: []string{"a"}, Val: []string{"a"},
		Rollout: func(m *art.Model, opts *art.ChatOptions) func(context.Context, string) (*art.Trajectory, error) {
			return func(ctx context.Context, s string) (*art.Trajectory, error) {
				x := art.NewTrajectory(art.User(s))
				reply, err := m.Chat(ctx, x, opts)
				if err == nil && reply.Content == "old e" {
					err = errors.New("down")
				}
				if err != nil {
					return nil, err
				}
				x.Metadata[agents.ScenarioKey], x.Metrics["solved"] = s, solved[reply.Content]
				return x, nil
			}
		},
	}
	got, err := training.Gain(t.Context(), old, []string{"a", "b", "c", "d", "e"})
	if want := (agents.Gain{Both: 1, Better: 1, Worse: 1, Neither: 1, Failed: 1}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	training.Checked, training.After = false, func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
		return nil, nil
	}
	if _, err := training.Gain(t.Context(), old, []string{"a"}); !errors.Is(err, art.ErrInvalid) {
		t.Errorf("without a checker: %v", err)
	}
}
