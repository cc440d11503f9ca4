package main

import "testing"

// TestClosest_Relative: a suggestion differs in at most a third of the letters; of equals it has the same first letter.
func TestClosest_Relative(t *testing.T) {
	flags := []string{"rate", "run", "rank", "seed", "size", "steps", "max-steps", "metric", "json", "project"}
	for typed, want := range map[string]string{
		"jsn": "json", "jsno": "json", "JSON": "json", "metrics": "metric", "max_steps": "max-steps", "projcet": "project",
		"late": "rate", "rnak": "rank", "step": "steps", "rn": "run",
		"name": "", "x": "", "": "", "data": "", "learning-rate": "", "sane": "", "été": "",
	} {
		if got := closest(typed, flags); got != want {
			t.Errorf("%q: %q, want %q", typed, got, want)
		}
	}
	if got := closest("sate", []string{"rate", "sane"}); got != "sane" {
		t.Errorf("%q, want the one with the same first letter", got)
	}
	if got := closest("a", []string{"", "b"}); got != "" {
		t.Errorf("%q", got)
	}
}
