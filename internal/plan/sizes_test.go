package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPadLength(t *testing.T) {
	require.Equal(t, 16, padLength(0))
	seen := map[int]bool{}
	for n := 1; n <= 1<<15; n++ {
		p := padLength(n)
		require.GreaterOrEqual(t, p, n)
		require.Zero(t, p%16)
		require.LessOrEqual(t, padLength(n-1), p)
		if n > 256 {
			require.Less(t, float64(p)/float64(n), 1.125, "at most an eighth is padding")
		}
		seen[p] = true
	}
	require.Len(t, seen, 16+7*8, "16 up to 256, 8 for each doubling")
}

// TestPadding_RoundsUp: what is padded has room, padding it again changes nothing, and more needs no less.
func TestPadding_RoundsUp(t *testing.T) {
	var few Training
	few.On.SlowCompile = true
	for _, p := range []Padding{Training{}.Padding(), few.Padding()} {
		for name, pad := range map[string]func(int) int{"length": p.Length, "rows": p.Rows, "keys": p.Keys} {
			for n := 1; n < 5000; n++ {
				require.GreaterOrEqual(t, pad(n), n, name)
				require.Equal(t, pad(n), pad(pad(n)), "%s %d", name, n)
				require.LessOrEqual(t, pad(n-1), pad(n), name)
			}
		}
	}
}

// TestSizes_LargestGroup: with its padding, the largest group has no more tokens than a micro-batch may have, unless it
// is none; and one of two more rows has.
func TestSizes_LargestGroup(t *testing.T) {
	for length := 32; length < 3000; length += 32 {
		s := Sizes{MicroTokens: 1024, Narrow: length%64 == 0}
		half := padLength(length / 2)
		n := s.LargestGroup(length)
		require.LessOrEqual(t, padRows(n)*half, max(0, s.Shared(length)-half))
		require.Greater(t, padRows(n+1)*half, s.Shared(length)-half)
	}
}
