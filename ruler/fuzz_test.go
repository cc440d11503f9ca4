package ruler

import (
	"math"
	"testing"

	"github.com/goart-dev/art"
)

// Whatever a judge writes: no panic, and ratings without defects are complete and within their range.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		`{"scores": [{"id": "a", "explanation": "x", "score": 0.5, "pass": true}, {"id": "b", "score": "1", "pass": false}]}`,
		"```json\n[{\"trajectory_id\": 1, \"score\": 1e-3}]\n```", `{"scores": [{"id": "a", "criteria": {"c": "yes"}}]}`,
		`{"scores": {}}`, `[[[[`, `{"scores": null}`, "", `{"scores":[{"id":"a","score":NaN}]}`,
	} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, withCriteria bool) {
		a := &ask{task: &task{},
			items: []Item{{ID: "a", Trajectory: &art.Trajectory{}}, {ID: "b", Trajectory: &art.Trajectory{}}}}
		if withCriteria {
			a.passFail = true
			a.criteria = []Criterion{{Name: "c", Weight: 1, Choices: []string{"no", "yes"}}}
		}
		ratings, defects := a.parse(text)
		if len(defects) > 0 {
			return
		}
		if len(ratings) != 2 {
			t.Fatalf("%d ratings of %q", len(ratings), text)
		}
		for id, r := range ratings {
			if math.IsNaN(r.score) || r.score < 0 || r.score > 1 {
				t.Errorf("%s has %v, of %q", id, r.score, text)
			}
		}
	})
}

// Rescaling keeps the range and the order, and moves the anchor to where it belongs.
func TestRescale(t *testing.T) {
	for _, p := range []float64{0, 0.2, 0.5, 1} {
		for _, a := range []float64{0, 0.3, 0.5, 1} {
			last := -1.0
			for s := 0.0; s <= 1; s += 0.125 {
				got := rescale(s, p, a)
				if math.IsNaN(got) || got < 0 || got > 1 || got < last {
					t.Errorf("%v with anchor %v -> %v becomes %v, behind %v", s, p, a, got, last)
				}
				last = got
			}
			if got := rescale(p, p, a); got != a {
				t.Errorf("the anchor %v becomes %v, want %v", p, got, a)
			}
		}
	}
}

func TestTau(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{10, 20, 30}, 1}, {[]float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		{[]float64{1, 2, 3, 4}, []float64{1, 2, 4, 3}, 4.0 / 6}, {[]float64{1, 1, 2}, []float64{1, 2, 3}, 2 / math.Sqrt(6)},
	} {
		if got := tau(c.a, c.b); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("tau of %v and %v is %v, want %v", c.a, c.b, got, c.want)
		}
	}
	if got := tau([]float64{1, 1}, []float64{1, 2}); !math.IsNaN(got) {
		t.Errorf("of equal values: %v", got)
	}
}

// A cut text keeps its ends, says how much is gone, and is never longer than before.
func TestCut(t *testing.T) {
	if got := cut("aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee", 6); got != "aaaa[... 44 characters cut ...]ee" {
		t.Error(got)
	}
	if got := cut("short", 3); got != "short" {
		t.Error(got)
	}
}
