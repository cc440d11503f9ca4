package credit

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOverlongPenalty(t *testing.T) {
	for tokens, want := range map[int]float64{0: 0, 80: 0, 85: -0.25, 100: -1, 101: -1, 90: -0.5} {
		require.InDelta(t, want, OverlongPenalty(tokens, 100, 20), 1e-15, fmt.Sprint(tokens))
	}
	require.Equal(t, []float64{0, -1}, []float64{OverlongPenalty(5, 5, 0), OverlongPenalty(6, 5, 0)}, "without a buffer")
}
