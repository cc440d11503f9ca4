package memory

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

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

// TestArena_Parts: small runs at once share what a large one has left, and give it back whole.
func TestArena_Parts(t *testing.T) {
	var m Pool
	const much = 4 * collected
	large := m.Arena(much)
	m.Keep(large)
	var parts []Span
	for range 3 {
		parts = append(parts, m.Arena(much/4))
	}
	require.Equal(t, much/4, m.Held())
	for i, p := range parts {
		require.Equal(t, unsafe.Add(large.Base, i*much/4), p.Base)
		clear(Bytes(p.Base, p.Size))
	}
	for _, i := range []int{1, 0, 2} {
		m.Keep(parts[i])
	}
	require.Equal(t, []Span{large}, m.arenas)

	part := m.Arena(much / 2)
	little := m.Arena(much / (2 * wide))
	require.Equal(t, much/2, m.Held(), "nothing little lies in what a large run may need as a whole")
	m.Keep(part)
	require.Equal(t, large, m.Arena(much))
	m.Keep(little)
}

// TestArena_Replaced: a new large arena replaces all that no run uses, and none of which a run has a part.
func TestArena_Replaced(t *testing.T) {
	var m Pool
	const much = 2 * collected
	a, b, little := m.Arena(much), m.Arena(much), m.Arena(64)
	m.Keep(a)
	m.Keep(b)
	m.Keep(little)
	part := m.Arena(much / 2)
	large := m.Arena(2 * much)
	require.Equal(t, 64+much/2, m.Held(), "the rest of the first, and the little one")
	m.Keep(part)
	m.Keep(large)
	require.Equal(t, 64+much+2*much, m.Held())
	m.Keep(m.Arena(4 * much))
	require.Equal(t, 64+4*much, m.Held())
	require.Len(t, m.whole, 2)
}

// TestArena_Random: runs at once never share memory, and what they give back is joined.
func TestArena_Random(t *testing.T) {
	const seed = 7
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var m Pool
	var used []Span
	for range 3000 {
		if len(used) > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(len(used))
			m.Keep(used[i])
			used = slices.Delete(used, i, i+1)
			continue
		}
		if len(used) > 5 {
			continue
		}
		size := 1 + rng.IntN(collected<<rng.IntN(3))
		s := m.Arena(size)
		require.GreaterOrEqual(t, s.Size, size)
		for _, x := range used {
			require.True(t, s.end() <= uintptr(x.Base) || x.end() <= uintptr(s.Base), "%v and %v", s, x)
		}
		used = append(used, s)
	}
	for _, s := range used {
		m.Keep(s)
	}
	require.ElementsMatch(t, m.whole, m.arenas)
}
