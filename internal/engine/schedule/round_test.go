package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// pending returns a slot with a task that has n tokens to compute and 3 in the cache.
func pending(adapter any, n int) slot {
	return busy(adapter, 3, make([]int32, 3+n)...)
}

// single marks a slot whose tokens the host samples.
func single(s slot) slot {
	s.task.Single = true
	return s
}

// waited sets the rounds since the last progress of a slot.
func waited(s slot, rounds int) slot {
	s.waited = rounds
	return s
}

// TestNext: which slots a round serves, at which width, and how it decodes.
func TestNext(t *testing.T) {
	for name, c := range map[string]struct {
		slots  []slot
		steps  int // 0 is 1
		rows   []int
		width  int
		decode bool
	}{
		"all decode":                   {slots: []slot{pending("a", 1), {}, pending("a", 1)}, rows: []int{0, 2}, width: 1},
		"padded to one width":          {slots: []slot{pending("a", 5), pending("a", 8)}, rows: []int{0, 1}, width: 8},
		"a prompt beyond all widths":   {slots: []slot{pending("a", 100)}, rows: []int{0}, width: 8},
		"the larger class":             {slots: []slot{pending("a", 1), pending("a", 6), pending("a", 7)}, rows: []int{1, 2}, width: 8},
		"the narrower of equal ones":   {slots: []slot{pending("a", 6), pending("a", 1)}, rows: []int{1}, width: 1},
		"the first of equal adapters":  {slots: []slot{pending("b", 1), pending("a", 1)}, rows: []int{0}, width: 1},
		"one adapter at a time":        {slots: []slot{pending("b", 1), pending("a", 1), pending("a", 1)}, rows: []int{1, 2}, width: 1},
		"the base model":               {slots: []slot{pending(nil, 1), pending("a", 1), pending(nil, 1)}, rows: []int{0, 2}, width: 1},
		"one that has waited too long": {slots: []slot{pending("a", 1), pending("a", 1), waited(pending("b", 6), 8)}, rows: []int{2}, width: 8},
		"one that has waited":          {slots: []slot{pending("a", 1), pending("a", 1), waited(pending("b", 6), 7)}, rows: []int{0, 1}, width: 1},
		"many steps":                   {slots: []slot{pending("a", 1), pending("a", 1)}, steps: 4, rows: []int{0, 1}, width: 1, decode: true},
		"many steps after prompts":     {slots: []slot{pending("a", 1), pending("a", 1), pending("b", 2)}, steps: 4, rows: []int{2}, width: 4},
		"the host samples":             {slots: []slot{single(pending("a", 1)), pending("a", 1), single(pending("a", 1))}, steps: 4, rows: []int{0, 2}, width: 1},
		"the host and many steps":      {slots: []slot{single(pending("a", 1)), pending("a", 1), pending("a", 1)}, steps: 4, rows: []int{1, 2}, width: 1, decode: true},
		"the host, single steps":       {slots: []slot{single(pending("a", 1)), pending("a", 1)}, rows: []int{0, 1}, width: 1},
		"many steps, waited too long":  {slots: []slot{waited(pending("a", 1), 8), pending("b", 2)}, steps: 4, rows: []int{0}, width: 1, decode: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Slots: len(c.slots), Widths: Sizes{1, 4, 8}, Steps: max(c.steps, 1)})
			copy(s.slots, c.slots)
			r, ok := s.Next()
			require.True(t, ok)
			require.Equal(t, c.width, r.Width)
			require.Equal(t, c.decode, r.Decode)
			var rows []int
			for _, row := range r.Rows {
				rows = append(rows, row.Slot)
				require.Same(t, c.slots[row.Slot].task, row.Task)
				require.Equal(t, 3, row.Start)
				require.Len(t, row.Tokens, min(len(c.slots[row.Slot].tokens)-3, c.width))
				require.Equal(t, c.decode, row.Samples == 4)
			}
			require.Equal(t, c.rows, rows)
		})
	}
	_, ok := New(Options{Slots: 2, Widths: Sizes{1}, Steps: 1}).Next()
	require.False(t, ok, "nothing to do")
}

// TestNext_Samples: a decoding call samples no more tokens than the task may have.
func TestNext_Samples(t *testing.T) {
	for limit, want := range map[int]int{5: 1, 6: 2, 8: 4, 9: 4} {
		s := New(Options{Slots: 1, Widths: Sizes{1}, Steps: 4})
		s.slots[0] = pending("a", 1)
		s.slots[0].task.Limit = limit
		r, _ := s.Next()
		require.Equal(t, want, r.Rows[0].Samples, "limit %d", limit)
	}
}

func TestSizes_Fit(t *testing.T) {
	s := Sizes{1, 4, 8}
	for n, want := range map[int]int{0: 1, 1: 1, 2: 4, 4: 4, 5: 8, 8: 8, 9: 8} {
		require.Equal(t, want, s.Fit(n), "%d", n)
	}
}
