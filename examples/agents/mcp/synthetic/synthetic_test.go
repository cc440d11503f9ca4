package synthetic

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/agents/mcp"
)

// trajectoryOf makes the calls, and completes with a summary unless it is "-".
func trajectoryOf(t *testing.T, summary string, calls ...mcp.Call) *art.Trajectory {
	t.Helper()
	out := art.NewTrajectory()
	if summary != "-" {
		calls = append(calls, mcp.Call{Tool: mcp.CompleteTool, Args: map[string]string{"summary": summary}})
		out.Metrics["completed"] = 1
	}
	for i, c := range calls {
		m, err := CallMessage(fmt.Sprint(i), c)
		if err != nil {
			t.Fatal(err)
		}
		out.Add(m)
	}
	return out
}

func TestChecker(t *testing.T) {
	check := Orders.Checker(3)
	w := newOrders(3)
	o := w.list[0]
	other := w.list[1].id
	status := mcp.Call{Tool: "order_status", Args: map[string]string{"order": o.id}}
	cancel := mcp.Call{Tool: "cancel_order", Args: map[string]string{"order": o.id}}
	wrong := mcp.Call{Tool: "cancel_order", Args: map[string]string{"order": other}}
	missing := mcp.Call{Tool: "cancel_order", Args: map[string]string{"order": "0"}}
	ask := scenario(1, "What is the order status of "+o.id+"?", o.status, status)
	do := scenario(1, "Cancel order "+o.id+".", "", cancel)
	for name, c := range map[string]struct {
		s       mcp.Scenario
		summary string
		calls   []mcp.Call
		score   float64
	}{
		"answered":              {ask, "Order " + o.id + " is " + o.status + ".", []mcp.Call{status}, 1},
		"answered in one word":  {ask, o.status, []mcp.Call{status}, 1},
		"after a mistake":       {ask, o.status, []mcp.Call{missing, status}, 1},
		"guessed":               {ask, o.status, nil, 0.1},
		"all answers":           {ask, "open packed shipped delivered", []mcp.Call{status}, 0.6},
		"another number":        {ask, o.status + " " + other, []mcp.Call{status}, 0.6},
		"not completed":         {ask, "-", []mcp.Call{status}, 0.5},
		"and did harm":          {ask, o.status, []mcp.Call{status, wrong}, 0.2},
		"nothing":               {ask, "-", nil, 0},
		"done":                  {do, "done", []mcp.Call{cancel}, 1},
		"done, not completed":   {do, "-", []mcp.Call{cancel}, 0.5},
		"said to be done":       {do, "done", nil, 0.1},
		"the wrong one":         {do, "done", []mcp.Call{wrong}, 0.2},
		"both":                  {do, "done", []mcp.Call{cancel, wrong}, 0.2},
		"one that is not there": {do, "done", []mcp.Call{missing}, 0.1},
	} {
		got, err := check(t.Context(), c.s, trajectoryOf(t, c.summary, c.calls...))
		if err != nil || math.Abs(got-c.score) > 1e-12 {
			t.Errorf("%s: %v, want %v; %v", name, got, c.score, err)
		}
	}
	if _, err := check(t.Context(), mcp.Scenario{ID: "x"}, trajectoryOf(t, "-")); err == nil {
		t.Error("a scenario without a solution is checked")
	}
}

// Scenarios are a function of the seed; those to validate with share no id with those to train on, and each has a
// solution that its checker accepts.
func TestScenarios(t *testing.T) {
	for _, d := range Domains {
		train, val := d.Scenarios(5, 2)
		again, _ := d.Scenarios(5, 2)
		other, _ := d.Scenarios(6, 2)
		if !reflect.DeepEqual(train, again) || reflect.DeepEqual(train, other) || len(val) < 200 ||
			len(train) < 2*len(val)-6 {
			t.Errorf("%s: %d and %d scenarios", d.Name, len(train), len(val))
		}
		easy, _ := d.Scenarios(5, 1)
		for _, s := range easy {
			if s.Difficulty != 1 || len(s.Want.Calls) != 1 {
				t.Errorf("%s: %+v", d.Name, s)
			}
		}
		seen := map[string]bool{}
		for _, s := range train {
			seen[s.Task] = true
		}
		for i, s := range val {
			if seen[s.Task] {
				t.Errorf("%s: %q is to train on and to validate with", d.Name, s.Task)
			}
			if i%4 > 0 {
				continue
			}
			summary := s.Want.Answer
			score, err := d.Checker(5)(t.Context(), s, trajectoryOf(t, summary+".", s.Want.Calls...))
			if err != nil || score != 1 {
				t.Errorf("%s: %q scores %v, %v", d.Name, s.Task, score, err)
			}
		}
	}
}

func TestArguments(t *testing.T) {
	tool := &Tool{Name: "x", Params: []string{"a"}}
	for text, want := range map[string]string{
		`{"a": "1"}`: "1", `{"a": 12345678901234567890}`: "12345678901234567890", `{"a": " b "}`: "b",
		`{"a": ""}`: "", `{"a": null}`: "", `{"a": ["1"]}`: "", `{}`: "", ``: "", `[]`: "", `null`: "", `{"a": "1", "b": "2"}`: "",
	} {
		got, err := arguments(tool, json.RawMessage(text))
		if got["a"] != want && err == nil || (err == nil) != (want != "") {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
}
