package tinker_test

import (
	"slices"
	"testing"

	"github.com/goart-dev/art/backend/loop"
	client "github.com/goart-dev/art/backend/tinker"
	"github.com/goart-dev/art/grpo/credit"
)

// TestConvert_NoTarget: positions without a target have none on the wire to a server of ours, so that it computes
// nothing for them; others are sent a target that nothing weighs.
func TestConvert_NoTarget(t *testing.T) {
	d := &loop.Datum{
		Input: []int32{7, 8, 9}, Targets: []int32{loop.NoTarget, 9, 3}, Logprobs: []float32{0, -1, -2},
		Advantages: []float32{5, 1, -1},
	}
	for _, loss := range []credit.Loss{credit.CrossEntropy, credit.CISPO} {
		for _, extended := range []bool{false, true} {
			got, err := client.Convert(d, loss, extended)
			if err != nil {
				t.Fatal(err)
			}
			want := []int64{0, 9, 3}
			if extended {
				want[0] = -1
			}
			if targets := got.Inputs["target_tokens"].Ints; !slices.Equal(targets, want) {
				t.Errorf("%s, extended %v: targets %v, want %v", loss, extended, targets, want)
			}
			weighs := "advantages"
			if loss == credit.CrossEntropy {
				weighs = "weights"
			}
			if list := got.Inputs[weighs].Floats; list[0] != 0 || list[1] == 0 {
				t.Errorf("%s, extended %v: %s %v", loss, extended, weighs, list)
			}
		}
	}
}
