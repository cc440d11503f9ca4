package trainset

import (
	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// origin is where a trajectory is in what the training call was given.
type origin struct{ group, trajectory int }

// SkipNotFinite adds to Skipped, and returns, the trajectories of skipped updates, each once: those whose own loss or
// gradient was not finite, and those of updates of which only the sum was not. They are numbered as in Sequences.
func (b *Set) SkipNotFinite(alone, together []int) []art.Skip {
	before, seen := len(b.Skipped), map[int]bool{}
	for _, x := range []struct {
		list   []int
		detail string
	}{
		{alone, "its loss or gradient is NaN or infinite: the update that it was in was skipped"},
		{together, "the sum of the gradients of its update overflowed, though each alone is finite: the update was skipped"},
	} {
		for _, i := range x.list {
			if !seen[i] {
				seen[i] = true
				b.skip(b.origins[i].group, b.origins[i].trajectory, credit.ReasonNotFinite, x.detail)
			}
		}
	}
	return b.Skipped[before:]
}
