package plan

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/engine/schedule"
	"github.com/goart-dev/art/internal/graphx"
)

// shapesOf are the shapes of slots with a context; few is for devices that take long to compile.
func shapesOf(slots, context int, few bool) Shapes {
	return Sampling{On: graphx.Profile{SlowCompile: few}, Slots: slots, Context: context}.Shapes()
}

func TestShapes_Widths(t *testing.T) {
	require.Equal(t, schedule.Sizes{1, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256}, shapesOf(1, 300, false).Widths)
	require.Equal(t, schedule.Sizes{1, 4, 8, 12, 16, 24, 32}, shapesOf(1, 40, false).Widths)
	require.Equal(t, schedule.Sizes{1}, shapesOf(1, 2, false).Widths)
	require.Equal(t, schedule.Sizes{1, 16, 64, 256}, shapesOf(1, 300, true).Widths)
	require.Equal(t, schedule.Sizes{1, 16}, shapesOf(1, 40, true).Widths)
}

func TestShapes_Windows(t *testing.T) {
	for context, want := range map[int]schedule.Sizes{150: {160}, 256: {128, 256}, 1000: {128, 256, 512, 1024}} {
		require.Equal(t, want, shapesOf(1, context, false).DecodeWindows)
	}
	require.Equal(t, schedule.Sizes{512, 2048, 8000}, shapesOf(1, 8000, false).Windows)
}

// TestShapes_Rounds: each shape occurs, and no other: the scheduler pads so many rows, of a width, within the budget.
func TestShapes_Rounds(t *testing.T) {
	for slots := 1; slots < 300; slots += 7 {
		for _, few := range []bool{false, true} {
			s := shapesOf(slots, 300, few)
			require.Equal(t, map[bool]int{false: 256, true: 2 * slots * 256}[few], s.Budget)
			occur := map[Round]bool{}
			for rows := 1; rows <= slots; rows++ {
				for _, width := range s.Widths {
					if width == 1 || rows == 1 || rows*width <= s.Budget {
						occur[Round{s.Heights.Fit(rows), width}] = true
					}
				}
			}
			require.Len(t, s.Rounds, len(occur))
			for _, r := range s.Rounds {
				require.True(t, occur[r], "%d slots: %v", slots, r)
			}
		}
	}
}

func TestShapes_Heights(t *testing.T) {
	require.Equal(t, schedule.Sizes{1, 2, 4, 8, 12}, shapesOf(12, 100, false).Heights)
	require.Equal(t, schedule.Sizes{1}, shapesOf(1, 100, false).Heights)
	for slots, want := range map[int]schedule.Sizes{1: {1}, 4: {4}, 5: {1, 5}, 32: {1, 32}, 64: {1, 8, 64}} {
		require.Equal(t, want, shapesOf(slots, 100, true).Heights)
	}
}

// TestSampling_Absurd: sizes whose product overflows an int64 give a finite number.
func TestSampling_Absurd(t *testing.T) {
	c := *qwen
	c.MaxPositions, c.NumKVHeads, c.HeadDim, c.NumLayers = 1<<24, 1<<24, 1<<24, 1<<10
	for _, fused := range []bool{true, false} {
		m := Sampling{
			Config: &c, On: graphx.Profile{FusedAttention: fused}, Slots: math.MaxInt, Context: 1 << 24,
			CacheTokens: math.MaxInt, Matrices: dtypes.Float32, CacheType: dtypes.Float32,
		}.Memory()
		require.Greater(t, m.Cache, 1e30)
		require.Greater(t, m.Work, 1e30)
		require.False(t, math.IsInf(m.Cache+m.Work, 0))
	}
}
