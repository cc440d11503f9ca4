package sums

import "testing"

func TestSplit(t *testing.T) {
	known, unseen := Split()
	if len(known) != 300 || len(unseen) != 100 {
		t.Errorf("%d and %d questions, want 300 and 100", len(known), len(unseen))
	}
	trained := map[[2]int]bool{}
	for _, s := range known {
		trained[[2]int{s.a, s.b}] = true
	}
	for _, s := range unseen {
		if trained[[2]int{s.a, s.b}] {
			t.Errorf("%d + %d is trained on", s.a, s.b)
		}
	}
}
