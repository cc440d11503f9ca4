package main

import "testing"

// TestBenchTrain_JSON: both sides are measured, and shared prompts are computed once.
func TestBenchTrain_JSON(t *testing.T) {
	status, stdout, stderr := command("bench", "train", "--json", "--pairs", "1", "--shared-prompt", "96",
		"--answer", "16", "--group-size", "4")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	got := decode(t, stdout)["train"].(map[string]any)
	if got["tokens"] != float64(4*112) || got["ideal"] != 2.8 {
		t.Errorf("tokens %v, ideal %v; want 448 and 2.8", got["tokens"], got["ideal"])
	}
	for side, computed := range map[string]float64{"shared": 160, "alone": 448} {
		one := got[side].(map[string]any)
		positive(t, one, "median", "tokens_per_s")
		if one["computed"] != computed || len(one["seconds"].([]any)) != 1 {
			t.Errorf("%s: %v, want %v tokens computed once", side, one, computed)
		}
	}
}

// TestBenchTrain_Invalid: bad numbers and names are explained.
func TestBenchTrain_Invalid(t *testing.T) {
	for _, args := range [][]string{
		{"bench", "trains"}, {"bench", "train", "--answer", "0"}, {"bench", "train", "--shape", "x"},
	} {
		if status, _, stderr := command(args...); status != 2 || stderr == "" {
			t.Errorf("%v: status %d, %q", args, status, stderr)
		}
	}
}
