package credit

import "testing"

func TestOverlong_Of(t *testing.T) {
	o := Overlong{Longest: 100, Buffer: 20}
	for tokens, want := range map[int]float64{0: 0, 80: 0, 85: -0.25, 100: -1, 101: -1, 90: -0.5} {
		if got := o.Of(tokens); got != want {
			t.Errorf("%d tokens: %v, want %v", tokens, got, want)
		}
	}
	sudden := Overlong{Longest: 5, Penalty: 3}
	if got := [2]float64{sudden.Of(5), sudden.Of(6)}; got != [2]float64{0, -3} {
		t.Errorf("without a buffer: %v", got)
	}
	if got := (Overlong{}).Of(1000); got != 0 {
		t.Errorf("off: %v", got)
	}
}
