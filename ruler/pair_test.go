package ruler_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
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

// A judge that is restricted to a schema answers what is asked: one entry for each id, with each criterion.
func TestStructured(t *testing.T) {
	for name, o := range map[string]ruler.Options{
		"scores": {}, "pass": {PassFail: true},
		"criteria": {Criteria: []ruler.Criterion{{Name: "polite", Text: "Is it polite?"}, {Name: "long", Choices: []string{"a", "b", "c"}}}},
	} {
		o.Structured, o.Retries = true, -1
		m := scriptedJudge(t, func(req *art.ChatRequest) string {
			f := req.Settings.ResponseFormat
			if f == nil || f.Type != art.FormatJSONSchema {
				t.Fatalf("%s: the answer is not restricted", name)
			}
			return fromSchema(t, f.Schema)
		})
		g, err := ruler.Score(t.Context(), m, groupOf(0.1, 0.5, 0.9), &o)
		if err != nil || len(g.Trajectories) != 3 {
			t.Errorf("%s: %v, %v", name, g, err)
		}
	}
}

// scriptedJudge is a judge whose answers are a function of the request.
func scriptedJudge(t *testing.T, answer func(*art.ChatRequest) string) *art.Model {
	t.Helper()
	b := &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, r *art.ChatRequest) (art.Message, error) {
		return art.Assistant(answer(r)), nil
	}}
	m := art.NewModel("judge", &art.ModelOptions{Frozen: true})
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return m
}

// fromSchema writes the smallest value that a schema allows.
func fromSchema(t *testing.T, schema json.RawMessage) string {
	t.Helper()
	var s struct {
		Type        string
		Const       json.RawMessage
		Enum        []json.RawMessage
		Properties  map[string]json.RawMessage
		Required    []string
		PrefixItems []json.RawMessage
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	switch {
	case s.Const != nil:
		return string(s.Const)
	case s.Enum != nil:
		return string(s.Enum[0])
	case s.Type == "object":
		var fields []string
		for _, name := range s.Required {
			fields = append(fields, strconv.Quote(name)+":"+fromSchema(t, s.Properties[name]))
		}
		return "{" + strings.Join(fields, ",") + "}"
	case s.Type == "array":
		var items []string
		for _, item := range s.PrefixItems {
			items = append(items, fromSchema(t, item))
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	return map[string]string{"string": `"x"`, "number": "0.25", "boolean": "true"}[s.Type]
}
