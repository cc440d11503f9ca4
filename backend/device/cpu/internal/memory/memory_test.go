package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestArena_Fits: a run gets the smallest arena that is large enough, and else replaces the largest, so that there are
// as many large ones as large runs at once.
func TestArena_Fits(t *testing.T) {
	var m Pool
	sizes := func() (list []int) {
		for _, s := range m.arenas {
			list = append(list, s.Size)
		}
		return list
	}
	small, large := m.Arena(64), m.Arena(6400)
	m.Keep(small)
	m.Keep(large)
	x := m.Arena(64)
	require.Equal(t, 64, x.Size)
	m.Keep(x)
	x = m.Arena(640)
	require.Equal(t, 6400, x.Size)
	m.Keep(x)
	m.Keep(m.Arena(12800))
	require.ElementsMatch(t, []int{64, 12800}, sizes())
	require.Equal(t, 12864, m.Held())
}

// TestArena_Wide: a small run leaves a large arena to large runs, and the reverse.
func TestArena_Wide(t *testing.T) {
	var m Pool
	const little, much = 1 << 20, 2 * collected
	m.Keep(m.Arena(much))
	small := m.Arena(little)
	require.Equal(t, little, small.Size)
	large := m.Arena(much)
	require.Zero(t, m.Held(), "the large run needs no other arena beside the small one")
	m.Keep(small)
	m.Keep(large)
	m.Keep(m.Arena(much / 2))
	require.Equal(t, little+much, m.Held())
}
