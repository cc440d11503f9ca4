package ruler_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/ruler"
)

// rated is a judge whose score depends on a trajectory and its place.
func rated(score func(t *art.Trajectory, place int) float64) *ruler.Ruler {
	rule := ruler.JudgeFunc(func(_ context.Context, items []ruler.Item) ([]ruler.Rating, error) {
		var out []ruler.Rating
		for i, item := range items {
			out = append(out, ruler.Rating{ID: item.ID, Score: score(item.Trajectory, i), Explanation: "so"})
		}
		return out, nil
	})
	return ruler.New(nil, &ruler.Options{Judges: []ruler.Judge{rule}, Retries: -1})
}

func TestPair(t *testing.T) {
	a, b, equal := attempt(0.8), attempt(0.3), attempt(0.8)
	quality := func(t *art.Trajectory, _ int) float64 { return 1 - t.Reward }
	for name, c := range map[string]struct {
		judge   *ruler.Ruler
		a, b    *art.Trajectory
		outcome float64
		swayed  bool
	}{
		"better":             {rated(quality), a, b, 1, false},
		"worse":              {rated(quality), b, a, 0, false},
		"nearly equal":       {rated(quality), a, attempt(0.75), 0.5, false},
		"the same":           {rated(quality), a, equal, 0.5, false},
		"the first place":    {rated(func(_ *art.Trajectory, place int) float64 { return 1 - float64(place) }), a, b, 0.5, true},
		"better, and biased": {rated(func(t *art.Trajectory, place int) float64 { return (1 - t.Reward + float64(place)) / 2 }), a, b, 1, true},
	} {
		p, err := c.judge.Pair(t.Context(), c.a, c.b)
		if err != nil || p.Outcome != c.outcome || p.Swayed != c.swayed {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	before := a.Reward
	p, err := rated(quality).Pair(t.Context(), a, b)
	if err != nil || math.Abs(p.A-0.8) > 1e-9 || math.Abs(p.B-0.3) > 1e-9 || len(p.Explanations) != 4 {
		t.Errorf("%+v, %v", p, err)
	}
	if a.Reward != before || a.Logs != nil {
		t.Error("the trajectory was changed")
	}
	if _, err := rated(quality).Pair(t.Context(), a, nil); !errors.Is(err, art.ErrInvalid) {
		t.Errorf("nil: %v", err)
	}
	broken := rated(func(*art.Trajectory, int) float64 { return math.NaN() })
	if _, err := broken.Pair(t.Context(), a, b); !errors.Is(err, ruler.ErrAnswer) {
		t.Errorf("a judge without a number: %v", err)
	}
}
