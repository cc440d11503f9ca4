package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ids returns tokens from one on.
func ids(from, n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = int32(from + i)
	}
	return list
}

// compute computes all that a sequence has to, and samples a token.
func compute(s *Scheduler, slot int, sampled int32) {
	s.Computed(slot, len(s.slots[slot].pending()))
	s.Push(slot, sampled)
}

// placed submits a task and places it.
func placed(t *testing.T, s *Scheduler, adapter any, limit int, prompt ...int32) (*Task, Placement) {
	task := &Task{Prompt: prompt, Adapter: adapter, Limit: limit}
	s.Submit(task)
	p, ok := s.Place()
	require.True(t, ok)
	require.Same(t, task, p.Task)
	return task, p
}

// TestPlace_Reuse: what a prompt takes from the cache after the prompt 1 to 10 with the reply 11, 12, of which 11 is
// computed, in blocks of 4.
func TestPlace_Reuse(t *testing.T) {
	for name, c := range map[string]struct {
		adapter any
		prompt  []int32
		running bool // the first one still runs
		reused  int
		copies  bool
	}{
		"nothing in common":              {prompt: ids(100, 9)},
		"another adapter":                {adapter: "b", prompt: ids(1, 12)},
		"the next turn":                  {prompt: append(ids(1, 12), 50, 51), reused: 11},
		"the same prompt":                {prompt: ids(1, 10), reused: 9, copies: true},
		"a prompt that ends there":       {prompt: ids(1, 12), reused: 11},
		"parts between blocks":           {prompt: append(ids(1, 8), 50, 51), reused: 8},
		"parts within a block":           {prompt: append(ids(1, 6), 50, 51), reused: 6, copies: true},
		"parts within the first block":   {prompt: append(ids(1, 1), 50, 51), reused: 1, copies: true},
		"the last token is computed":     {prompt: ids(1, 8), reused: 7, copies: true},
		"one token":                      {prompt: ids(1, 1)},
		"the next turn, while it runs":   {prompt: append(ids(1, 12), 50), running: true, reused: 11, copies: true},
		"parts between, while it runs":   {prompt: append(ids(1, 8), 50), running: true, reused: 8},
		"the same prompt, while it runs": {prompt: ids(1, 10), running: true, reused: 9, copies: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options{Slots: 2, Blocks: 20, Each: 4, Widths: Sizes{1, 16}, Steps: 1, Budget: 16})
			_, first := placed(t, s, nil, 30, ids(1, 10)...)
			compute(s, first.Slot, 11)
			compute(s, first.Slot, 12)
			table := s.slots[first.Slot].table
			if !c.running {
				s.Finish(first.Slot)
			}
			free, _ := s.Blocks()
			task, p := placed(t, s, c.adapter, 30, c.prompt...)
			require.Equal(t, c.reused, task.Reused)
			require.Equal(t, c.copies, p.Copy)
			b := s.slots[p.Slot]
			require.Equal(t, c.prompt[c.reused:], b.pending())
			require.Len(t, b.table, blocksOf(len(c.prompt), 4))
			shared := c.reused / 4
			require.Equal(t, table[:shared], b.table[:shared])
			if c.copies {
				require.Equal(t, []int32{table[shared], b.table[shared]}, []int32{p.From, p.To})
			}
			now, _ := s.Blocks()
			own := len(b.table) - shared
			if !c.copies && c.reused%4 > 0 {
				own-- // it goes on in the last block
			}
			require.Equal(t, free-own, now)
		})
	}
}

// TestPlace_Together: of tasks that arrive together with a common beginning of a block or more, one computes it and the
// others wait for that; tasks with other prompts go ahead of them.
func TestPlace_Together(t *testing.T) {
	s := New(Options{Slots: 4, Blocks: 40, Each: 4, Widths: Sizes{1, 4, 8}, Steps: 1, Budget: 8})
	first := &Task{Prompt: append(ids(1, 10), 60), Limit: 20}
	same := &Task{Prompt: append(ids(1, 10), 61), Limit: 20}
	short := &Task{Prompt: append(ids(1, 3), 62), Limit: 20}
	other := &Task{Prompt: append(ids(1, 10), 63), Limit: 20, Adapter: "b"}
	for _, task := range []*Task{first, same, short, other} {
		s.Submit(task)
	}
	for _, want := range []*Task{first, short, other} {
		p, ok := s.Place()
		require.True(t, ok)
		require.Same(t, want, p.Task)
	}
	_, ok := s.Place()
	require.False(t, ok)
	s.Computed(0, 8)
	_, ok = s.Place()
	require.False(t, ok, "two of the common tokens are missing")
	s.Computed(0, 3)
	p, ok := s.Place()
	require.True(t, ok)
	require.Same(t, same, p.Task)
	require.Equal(t, 10, same.Reused)
	require.Equal(t, Placement{Task: same, Slot: 3, Copy: true, From: s.slots[0].table[2], To: s.slots[3].table[2]}, p)
}

// TestPlace_WaitsInVain: who waits for another's prompt computes it alone if that one is cancelled.
func TestPlace_WaitsInVain(t *testing.T) {
	s := New(Options{Slots: 2, Blocks: 40, Each: 4, Widths: Sizes{1, 4, 8}, Steps: 1, Budget: 8})
	_, p := placed(t, s, nil, 20, ids(1, 10)...)
	s.Submit(&Task{Prompt: ids(1, 10), Limit: 20})
	_, ok := s.Place()
	require.False(t, ok)
	s.Finish(p.Slot)
	p, ok = s.Place()
	require.True(t, ok)
	require.Zero(t, p.Task.Reused)
}

// TestPlace_Memory: a task runs when there are blocks for its tokens and for one more of each that runs. Those behind
// it wait too.
func TestPlace_Memory(t *testing.T) {
	s := New(Options{Slots: 4, Blocks: 1 + 6, Each: 4, Widths: Sizes{1, 4, 8}, Steps: 1, Budget: 8})
	_, p := placed(t, s, nil, 20, ids(1, 10)...) // 3 blocks
	large, small := &Task{Prompt: ids(20, 9), Limit: 12}, &Task{Prompt: ids(40, 1), Limit: 8}
	s.Submit(large)
	s.Submit(small)
	_, ok := s.Place()
	require.False(t, ok)
	require.Equal(t, 2, s.Waiting())
	s.Drop(func(task *Task) bool { return task == large })
	p2, ok := s.Place()
	require.True(t, ok)
	require.Same(t, small, p2.Task)
	s.Finish(p2.Slot)
	s.Submit(large)
	compute(s, p.Slot, 11)
	s.Finish(p.Slot)
	_, cached := s.Blocks()
	require.Equal(t, 3, cached)
	_, ok = s.Place()
	require.True(t, ok)
	require.Panics(t, func() { s.Submit(&Task{Prompt: ids(1, 3), Limit: 25}) }, "it would never run")
}

// TestNext_Preempts: a sequence that grows while the cache is full takes the blocks of the one that arrived last, which
// waits ahead of later ones, and goes on with what it has.
func TestNext_Preempts(t *testing.T) {
	s := New(Options{Slots: 2, Blocks: 1 + 5, Each: 4, Widths: Sizes{1, 4, 8}, Steps: 1, Budget: 8})
	old, p := placed(t, s, nil, 20, ids(1, 8)...)
	young, q := placed(t, s, nil, 12, ids(20, 8)...)
	later := &Task{Prompt: ids(40, 1), Limit: 5}
	s.Submit(later)
	compute(s, q.Slot, 30)
	compute(s, p.Slot, 9)
	r, ok := s.Next() // each needs a third block, and one is free
	require.True(t, ok)
	require.Len(t, r.Rows, 1)
	require.Same(t, old, r.Rows[0].Task)
	require.Len(t, r.Rows[0].Blocks, 3)
	require.Equal(t, []*Task{young, later}, s.waiting)
	require.Equal(t, 1, s.Stats().Preempted)
	s.Finish(p.Slot)
	p, ok = s.Place()
	require.True(t, ok)
	require.Same(t, young, p.Task)
	b := s.slots[p.Slot]
	require.Equal(t, append(ids(20, 8), 30), b.tokens)
	require.Equal(t, 8, b.computed, "its blocks were still cached")
	require.Zero(t, young.Reused, "that of its first run")
}

// TestFinish_Adapters: the blocks of few adapters without sequences stay cached, and unused ones are not kept.
func TestFinish_Adapters(t *testing.T) {
	s := New(Options{Slots: 1, Blocks: 40, Each: 4, Widths: Sizes{1, 4, 8}, Steps: 1, Budget: 8})
	for step := range 20 {
		_, p := placed(t, s, step, 20, ids(1, 8)...)
		compute(s, p.Slot, 9)
		s.Next()
		s.Finish(p.Slot)
		require.LessOrEqual(t, len(s.tree.roots), keptAdapters)
	}
	_, cached := s.Blocks()
	require.Equal(t, 2*keptAdapters, cached)
	task, _ := placed(t, s, 19, 20, ids(1, 9)...)
	require.Equal(t, 8, task.Reused, "the newest is kept")
}
