package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// running is a sequence for tables: so many tokens to compute, behind three that are computed.
type running struct {
	adapter any
	pending int
	waited  int
	single  bool
}

// with returns a scheduler with these sequences, which arrived in their order.
func with(opts Options, list ...running) *Scheduler {
	opts.Slots, opts.Blocks, opts.Each = len(list), 1000, 4
	s := New(opts)
	for i, r := range list {
		task := &Task{Prompt: ids(100*i, 3+r.pending), Adapter: r.adapter, Limit: 200, Single: r.single}
		s.Submit(task)
		p, _ := s.Place()
		s.Computed(p.Slot, 3)
		s.slots[p.Slot].waited = r.waited
	}
	return s
}

// TestNext: which sequences a round serves, at which width, and how it decodes.
func TestNext(t *testing.T) {
	for name, c := range map[string]struct {
		list    []running
		steps   int // 0 is 1
		prefill bool
		slots   []int
		width   int
		decode  bool
	}{
		"all decode":                  {list: []running{{pending: 1}, {pending: 1}}, slots: []int{0, 1}, width: 1},
		"padded to one width":         {list: []running{{pending: 5}, {pending: 8}}, slots: []int{0, 1}, width: 8},
		"a prompt beyond all widths":  {list: []running{{pending: 100}}, slots: []int{0}, width: 8},
		"the budget":                  {list: []running{{pending: 8}, {pending: 8}, {pending: 8}}, slots: []int{0, 1}, width: 8},
		"the oldest prompt":           {list: []running{{pending: 4}, {pending: 8}, {pending: 8}}, slots: []int{0}, width: 4},
		"others of its width":         {list: []running{{pending: 3}, {pending: 8}, {pending: 4}}, slots: []int{0, 2}, width: 4},
		"one adapter at a time":       {list: []running{{"a", 1, 0, false}, {"b", 1, 0, false}, {"b", 1, 0, false}}, slots: []int{1, 2}, width: 1},
		"the first of equal adapters": {list: []running{{"b", 1, 0, false}, {"a", 1, 0, false}}, slots: []int{0}, width: 1},
		"the one that waited":         {list: []running{{"a", 1, 1, false}, {"b", 1, 0, false}, {"b", 1, 0, false}}, slots: []int{0}, width: 1},
		"prompts first":               {list: []running{{pending: 1}, {pending: 8}}, slots: []int{1}, width: 8},
		"then decoding":               {list: []running{{pending: 1}, {pending: 8}}, prefill: true, slots: []int{0}, width: 1},
		"prompts of other adapters":   {list: []running{{"a", 8, 0, false}, {"b", 8, 0, false}}, slots: []int{0}, width: 8},
		"half the budget":             {list: []running{{pending: 8}, {pending: 8}, {pending: 1}}, slots: []int{0}, width: 8},
		"many steps":                  {list: []running{{pending: 1}, {pending: 1}}, steps: 4, slots: []int{0, 1}, width: 1, decode: true},
		"many steps after prompts":    {list: []running{{pending: 1}, {pending: 2}}, steps: 4, prefill: true, slots: []int{1}, width: 4},
		"many steps, waited too long": {list: []running{{"a", 1, 8, false}, {"b", 2, 0, false}}, steps: 4, slots: []int{0}, width: 1, decode: true},
		"the host samples":            {list: []running{{nil, 1, 1, true}, {nil, 1, 0, false}, {nil, 1, 1, true}}, steps: 4, slots: []int{0, 2}, width: 1},
		"the host and many steps":     {list: []running{{nil, 1, 0, true}, {nil, 1, 0, false}, {nil, 1, 0, false}}, steps: 4, slots: []int{1, 2}, width: 1, decode: true},
		"the host, single steps":      {list: []running{{nil, 1, 0, true}, {nil, 1, 0, false}}, slots: []int{0, 1}, width: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := with(Options{Widths: Sizes{1, 4, 8}, Steps: max(c.steps, 1), Budget: 16}, c.list...)
			s.prefill = c.prefill
			r, ok := s.Next()
			require.True(t, ok)
			require.Equal(t, c.width, r.Width)
			require.Equal(t, c.decode, r.Decode)
			var slots []int
			for _, row := range r.Rows {
				slots = append(slots, row.Slot)
				require.Same(t, s.slots[row.Slot].task, row.Task)
				require.Equal(t, 3, row.Start)
				require.Len(t, row.Tokens, min(c.list[row.Slot].pending, c.width))
				require.Equal(t, c.decode, row.Samples == 4)
				require.GreaterOrEqual(t, 4*len(row.Blocks), row.Start+max(len(row.Tokens), row.Samples))
			}
			require.Equal(t, c.slots, slots)
		})
	}
	_, ok := New(Options{Slots: 2, Blocks: 10, Each: 4, Widths: Sizes{1}, Steps: 1}).Next()
	require.False(t, ok, "nothing to do")
}

// TestNext_Turns: while a long prompt is computed in chunks, every other round decodes.
func TestNext_Turns(t *testing.T) {
	s := with(Options{Widths: Sizes{1, 4, 8}, Steps: 1, Budget: 8}, running{pending: 1}, running{pending: 20})
	for _, width := range []int{4, 1, 4, 1, 4, 1, 4, 1, 4, 1, 1} {
		r, ok := s.Next()
		require.True(t, ok)
		require.Equal(t, width, r.Width)
		for _, row := range r.Rows {
			if s.Computed(row.Slot, len(row.Tokens)) {
				s.Push(row.Slot, 7)
			}
		}
	}
}

// TestNext_Samples: a decoding call samples no more tokens than the task may have.
func TestNext_Samples(t *testing.T) {
	for limit, want := range map[int]int{5: 1, 6: 2, 8: 4, 9: 4} {
		s := with(Options{Widths: Sizes{1}, Steps: 4, Budget: 8}, running{pending: 1})
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

// TestBlocks: blocks follow one another where they can, and single ones begin where there is room.
func TestBlocks(t *testing.T) {
	b := newBlocks(33)
	take := func(behind int32, many bool) int32 {
		at, ok := b.take(behind, many)
		require.True(t, ok)
		return at
	}
	require.Equal(t, []int32{1, 2, 3}, []int32{take(0, true), take(1, true), take(2, false)})
	require.Equal(t, int32(4), take(3, false))
	require.Equal(t, int32(19), take(1, false), "the middle of 28 free ones")
	b.give(2)
	require.Equal(t, int32(2), take(1, false))
	for b.free > 0 {
		take(32, false)
	}
	_, ok := b.take(0, false)
	require.False(t, ok)
	require.Panics(t, func() { b.give(0) })
	b.give(7)
	require.Panics(t, func() { b.give(7) })
}
