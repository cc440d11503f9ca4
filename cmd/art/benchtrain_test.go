package main

import "testing"

// TestBenchTrain_JSON: both sides are measured, shared prompts are computed once, and layers that are computed again
// take at least 20 % less.
func TestBenchTrain_JSON(t *testing.T) {
	measure := func(flags ...string) map[string]any {
		status, stdout, stderr := command(append([]string{"debug", "bench", "train", "--json", "--pairs", "1",
			"--shared-prompt", "96",
			"--answer", "16", "--group-size", "4"}, flags...)...)
		if status != 0 || stderr != "" {
			t.Fatalf("status %d, standard error %q", status, stderr)
		}
		return decode(t, stdout)["train"].(map[string]any)
	}
	got, less := measure(), measure("--recompute")["work_bytes"].(float64)
	if most := got["work_bytes"].(float64); less == 0 || less > 0.8*most {
		t.Errorf("%v bytes, and %v with layers computed again", most, less)
	}
	if got["tokens"] != float64(4*112) || got["ideal"] != 2.8 {
		t.Errorf("tokens %v, ideal %v; want 448 and 2.8", got["tokens"], got["ideal"])
	}
	sides := func(got map[string]any, shared, alone float64) {
		for side, computed := range map[string]float64{"shared": shared, "alone": alone} {
			one := got[side].(map[string]any)
			positive(t, one, "median", "tokens_per_s")
			if one["computed"] != computed || len(one["seconds"].([]any)) != 1 {
				t.Errorf("%s: %v, want %v tokens computed once", side, one, computed)
			}
		}
	}
	sides(got, 160, 448)
	turns := measure("--conversation")
	if turns["tokens"] != float64(112+128+144+160) || turns["ideal"] != 3.4 {
		t.Errorf("turns of a conversation: tokens %v, ideal %v; want 544 and 3.4", turns["tokens"], turns["ideal"])
	}
	sides(turns, 160, 640) // turns alone are padded, and not evenly
	sides(measure("--cold"), 160, 448)
}

// TestBenchTrain_Invalid: bad numbers and names are explained.
func TestBenchTrain_Invalid(t *testing.T) {
	for _, args := range [][]string{
		{"debug", "bench", "trains"}, {"debug", "bench", "train", "--answer", "0"}, {"debug", "bench", "train", "--shape", "x"},
	} {
		if status, _, stderr := command(args...); status != 2 || stderr == "" {
			t.Errorf("%v: status %d, %q", args, status, stderr)
		}
	}
}
