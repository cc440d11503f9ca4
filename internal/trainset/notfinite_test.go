package trainset

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// TestSet_SkipNotFinite: names are those of what was given, whatever was skipped before, each once, and a trajectory
// that is not finite by itself is not said to be part of a sum.
func TestSet_SkipNotFinite(t *testing.T) {
	good := func(reward float64) *art.Trajectory { return rewarded(reward, sampled([]int32{1}, []int32{2})) }
	groups := append(group(good(1), good(1)), nil) // both are skipped
	groups = append(groups, group(rewarded(4), good(1), nil, good(2))...)
	b := collectAll(groups)
	sequences, err := credit.Normalize(b.Sequences, (&art.TrainConfig{}).WithDefaults().Credit().Normalize)
	require.NoError(t, err)
	require.Len(t, sequences, 2)
	first, second := sequences[0].Trajectory, sequences[1].Trajectory
	before := len(b.Skipped)
	skips := b.SkipNotFinite([]int{second, second}, []int{first, second})
	require.Equal(t, skips, b.Skipped[before:])
	require.Len(t, skips, 2)
	require.Equal(t, []int{2, 3, 2, 1}, []int{skips[0].Group, skips[0].Trajectory, skips[1].Group, skips[1].Trajectory})
	for _, s := range skips {
		require.Equal(t, credit.ReasonNotFinite, s.Reason)
	}
	require.Contains(t, skips[0].Detail, "its loss or gradient is NaN or infinite")
	require.Contains(t, skips[1].Detail, "the sum of the gradients of its update overflowed")
	require.Equal(t, 2.0, b.Metrics(nil)["data/skipped_not_finite"])
	require.Empty(t, b.SkipNotFinite(nil, nil))
}
