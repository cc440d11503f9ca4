package schedule

import "slices"

// Placement says that a task runs.
type Placement struct {
	Task *Task
	Slot int
	// Copy says that before the next round block From must be copied to block To.
	Copy     bool
	From, To int32
}

// Place lets a task run: the first one that does not wait for what another computes. It reports false if there is none,
// or no slot, or too few blocks.
func (s *Scheduler) Place() (p Placement, ok bool) {
	slot := slices.Index(s.slots, nil)
	if slot < 0 {
		return p, false
	}
	for i, t := range s.waiting {
		m := s.tree.find(s.tree.root(t.Adapter), t.tokens[:len(t.tokens)-1])
		if s.waits(t, m) {
			continue
		}
		if !s.fits(t, m) {
			s.tree.forget(s.tree.root(t.Adapter))
			return p, false
		}
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return s.place(t, m, slot), true
	}
	return p, false
}

// waits reports whether a running sequence is about to compute a block or more of the tokens of a task.
func (s *Scheduler) waits(t *Task, m match) bool {
	if t.behind != nil && slices.Contains(s.slots, t.behind) && t.behind.computed < t.until {
		return true
	}
	t.behind = nil
	least := m.tokens(s.opts.Each) + s.opts.Each
	for _, b := range s.slots {
		if b == nil || b.task.Adapter != t.Adapter || len(b.pending()) < 2 {
			continue
		}
		if n := commonPrefix(b.tokens, t.tokens[:len(t.tokens)-1]); n >= least && b.computed < n {
			t.behind, t.until, least = b, n, n+1
		}
	}
	return t.behind != nil
}

// fits reports whether there are blocks for the tokens of a task, and one for each sequence that runs.
func (s *Scheduler) fits(t *Task, m match) bool {
	need := blocksOf(len(t.tokens), s.opts.Each) - len(m.whole) + len(s.slots) - s.Free()
	have := s.tree.blocks.free + s.tree.idle
	for _, n := range m.whole {
		if n.refs == 0 {
			have--
		}
	}
	return need <= have
}

// place lets a task run in a slot.
func (s *Scheduler) place(t *Task, m match, slot int) Placement {
	b := &sequence{task: t, root: s.tree.root(t.Adapter), tokens: t.tokens, table: make([]int32, 0, len(m.whole)+1)}
	s.tree.hold(b.root)
	for _, n := range m.whole {
		s.tree.hold(n)
		b.append(n)
	}
	b.computed = len(b.path) * s.opts.Each
	p := Placement{Task: t, Slot: slot}
	if m.part != nil {
		p = s.branch(b, m, p)
	}
	if !s.tree.grow(b, blocksOf(len(b.tokens), s.opts.Each)) {
		panic("schedule: there were blocks for a task")
	}
	s.slots[slot] = b
	if !t.ran {
		t.Reused, t.ran = b.computed, true
		s.stats.Reused += b.computed
	}
	t.behind = nil
	return p
}

// branch lets a sequence go on with the first tokens of a block: in the block, if nobody else may read it, or in a
// copy.
func (s *Scheduler) branch(b *sequence, m match, p Placement) Placement {
	n := m.part
	if own := n.refs == 0 && len(n.children) == 0 && m.common == len(n.tokens); own {
		s.tree.hold(n)
		b.append(n)
		b.computed += m.common
		return p
	}
	s.tree.hold(n) // it must not be evicted for its copy
	defer s.tree.release(n, s.round)
	to := s.tree.add(b.last(), true)
	if to == nil {
		return p // there is a block if the other one is not kept: its tokens are computed again
	}
	b.append(to)
	s.tree.fill(to, b.tokens[b.computed:b.computed+m.common])
	b.computed += m.common
	s.stats.Copied++
	p.Copy, p.From, p.To = true, n.block, to.block
	return p
}
