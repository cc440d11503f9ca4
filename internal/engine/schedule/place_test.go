package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// idle returns an idle slot with some tokens in the cache.
func idle(adapter any, touched int, cached ...int32) slot {
	return slot{adapter: adapter, tokens: cached, computed: len(cached), touched: touched}
}

// busy returns a slot that has a task: tokens, of which some are computed.
func busy(adapter any, computed int, tokens ...int32) slot {
	return slot{task: &Task{Adapter: adapter, Limit: 100}, adapter: adapter, tokens: tokens, computed: computed}
}

// overrun marks a slot whose cache holds more than its tokens.
func overrun(s slot) slot {
	s.overrun = true
	return s
}

// TestPlace: which slot a prompt gets, and which prefix is copied to it.
func TestPlace(t *testing.T) {
	for name, c := range map[string]struct {
		slots   []slot
		adapter any
		prompt  []int32
		want    Placement // without the task
		reused  int
	}{
		"empty cache":                 {slots: []slot{{}, {}}, adapter: "a", prompt: []int32{1, 2}, want: Placement{Copy: true}},
		"least recently used":         {slots: []slot{idle("a", 5, 1), idle("a", 3, 2)}, adapter: "a", prompt: []int32{9}, want: Placement{Slot: 1, From: 1, Copy: true}},
		"skips slots with tasks":      {slots: []slot{busy("a", 1, 7, 8), idle("a", 3)}, adapter: "a", prompt: []int32{9}, want: Placement{Slot: 1, From: 1, Copy: true}},
		"continues a conversation":    {slots: []slot{idle("a", 1), idle("a", 9, 1, 2, 3)}, adapter: "a", prompt: []int32{1, 2, 3, 4}, want: Placement{Slot: 1, From: 1}, reused: 3},
		"clears an overrun":           {slots: []slot{overrun(idle("a", 1, 1, 2))}, adapter: "a", prompt: []int32{1, 2, 4}, want: Placement{Copy: true}, reused: 2},
		"the last token is computed":  {slots: []slot{idle("a", 9, 1, 2), idle("a", 1)}, adapter: "a", prompt: []int32{1, 2}, want: Placement{Slot: 1, Copy: true}, reused: 1},
		"another adapter":             {slots: []slot{idle("a", 1, 1, 2, 3)}, adapter: "b", prompt: []int32{1, 2, 3, 4}, want: Placement{Copy: true}},
		"copies from a running slot":  {slots: []slot{busy("a", 3, 1, 2, 3, 4), {}}, adapter: "a", prompt: []int32{1, 2, 3, 5}, want: Placement{Slot: 1, Copy: true}, reused: 3},
		"only what is computed":       {slots: []slot{busy("a", 2, 1, 2, 3, 4), {}}, adapter: "a", prompt: []int32{1, 2, 3, 5}, want: Placement{Slot: 1, Copy: true}, reused: 2},
		"copies from an idle slot":    {slots: []slot{idle("a", 9, 1, 2, 3, 4), idle("a", 5)}, adapter: "a", prompt: []int32{1, 2, 5}, want: Placement{Slot: 1, Copy: true}, reused: 2},
		"shortens the only idle slot": {slots: []slot{idle("a", 9, 1, 2, 3, 4)}, adapter: "a", prompt: []int32{1, 2, 5}, want: Placement{Copy: true}, reused: 2},
		"longest prefix":              {slots: []slot{idle("a", 9, 1, 2), idle("a", 8, 1, 2, 3)}, adapter: "a", prompt: []int32{1, 2, 3, 4}, want: Placement{Slot: 1, From: 1}, reused: 3},
		"equal prefixes: continues":   {slots: []slot{busy("a", 2, 1, 2, 8), idle("a", 8, 1, 2)}, adapter: "a", prompt: []int32{1, 2, 4}, want: Placement{Slot: 1, From: 1}, reused: 2},
		"equal prefixes: first":       {slots: []slot{idle("a", 8, 1, 2), idle("a", 3, 1, 2)}, adapter: "a", prompt: []int32{1, 2, 4}, want: Placement{}, reused: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Slots: len(c.slots)})
			copy(s.slots, c.slots)
			task := &Task{Prompt: c.prompt, Adapter: c.adapter, Limit: 100}
			s.Submit(task)
			got, ok := s.Place()
			require.True(t, ok)
			c.want.Task = task
			require.Equal(t, c.want, got)
			require.Equal(t, c.reused, task.Reused)
			require.Equal(t, c.prompt[c.reused:], s.slots[got.Slot].pending())
			require.Zero(t, s.Waiting())
		})
	}
}

// TestPlace_Order: tasks wait for a slot in order of arrival, and those that are dropped do not count.
func TestPlace_Order(t *testing.T) {
	s := New(Options{Slots: 1})
	_, ok := s.Place()
	require.False(t, ok, "the queue is empty")
	tasks := []*Task{{Prompt: []int32{1}}, {Prompt: []int32{2}}, {Prompt: []int32{3}}}
	for _, task := range tasks {
		s.Submit(task)
	}
	p, ok := s.Place()
	require.True(t, ok)
	require.Same(t, tasks[0], p.Task)
	_, ok = s.Place()
	require.False(t, ok, "the slot is taken")
	require.Equal(t, []int{0, 2}, []int{s.Free(), s.Waiting()})
	s.Drop(func(task *Task) bool { return task == tasks[1] })
	s.Finish(p.Slot)
	p, ok = s.Place()
	require.True(t, ok)
	require.Same(t, tasks[2], p.Task)
	require.False(t, s.Idle())
	s.Finish(p.Slot)
	require.True(t, s.Idle())
}

// TestPlace_Recent: of idle slots without a common prefix the one that was used last is kept. To be placed is a use.
func TestPlace_Recent(t *testing.T) {
	s := New(Options{Slots: 2, Widths: Sizes{1}, Steps: 1})
	place := func(prompt int32) int {
		s.Submit(&Task{Prompt: []int32{prompt}, Limit: 10})
		p, ok := s.Place()
		require.True(t, ok)
		return p.Slot
	}
	compute := func() {
		r, ok := s.Next()
		require.True(t, ok)
		for _, row := range r.Rows {
			require.True(t, s.Computed(row.Slot, 1))
			s.Push(row.Slot, 7)
		}
	}
	first := place(1)
	compute()
	second := place(2)
	s.Finish(second)
	compute()
	s.Finish(first)
	require.Equal(t, second, place(3), "the first computed after the second was placed")
	s.Finish(second)
	require.Equal(t, first, place(4), "the second was placed again")
}

// TestLost: tasks compute again what the cache had, and nothing is reused.
func TestLost(t *testing.T) {
	s := New(Options{Slots: 2})
	s.slots[0], s.slots[1] = busy("a", 2, 4, 5, 6), overrun(idle("a", 1, 4, 5))
	task := s.slots[0].task
	task.Reused = 1
	s.Lost()
	require.Zero(t, task.Reused)
	require.Equal(t, []int32{4, 5, 6}, s.slots[0].pending())
	s.Submit(&Task{Prompt: []int32{4, 5, 7}, Adapter: "a"})
	p, ok := s.Place()
	require.True(t, ok)
	require.Zero(t, p.Task.Reused)
}
