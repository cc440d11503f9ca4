package schedule

import "slices"

// patience is the number of rounds after which decoding calls of many tokens go before prompts.
const patience = 8

// Round is what the device computes in one call.
type Round struct {
	Rows   []Row
	Width  int  // tokens of each row, padded
	Decode bool // a call that samples up to Row.Samples tokens for each row, rather than one that computes Row.Tokens
}

// Row is the part of a sequence in a round.
type Row struct {
	Task    *Task
	Slot    int
	Start   int     // tokens in the cache
	Tokens  []int32 // to compute; valid until the sequence changes
	Blocks  []int32 // of all its tokens, those to compute and to sample too; valid until the sequence changes
	Samples int     // decoding: tokens to sample, at most
}

// class is what the rows of a round have in common.
type class struct {
	adapter any
	width   int
	single  bool // see [Task.Single]; only where it makes a difference
}

// Next starts a round. It reports false if no sequence runs.
func (s *Scheduler) Next() (Round, bool) {
	for {
		slots, c := s.choose()
		if len(slots) == 0 {
			return Round{}, false
		}
		r := Round{Width: c.width, Decode: s.decodes(c)}
		for _, i := range slots {
			if s.reserve(i, r) {
				r.Rows = append(r.Rows, s.row(i, r))
			}
		}
		r.Rows = slices.DeleteFunc(r.Rows, func(row Row) bool { // preempted by an older one
			return s.slots[row.Slot] == nil || s.slots[row.Slot].task != row.Task
		})
		if len(r.Rows) == 0 {
			continue
		}
		s.round++
		s.prefill = c.width > 1
		for _, b := range s.slots {
			if b != nil {
				b.waited++
			}
		}
		return r, true
	}
}

// row returns the part of a sequence in a round.
func (s *Scheduler) row(i int, r Round) Row {
	b := s.slots[i]
	return Row{
		Task: b.task, Slot: i, Start: b.computed, Tokens: b.pending()[:min(len(b.pending()), r.Width)], Blocks: b.table,
		Samples: s.samples(b, r),
	}
}

// samples is the number of tokens that a call samples for a sequence.
func (s *Scheduler) samples(b *sequence, r Round) int {
	if !r.Decode {
		return 0
	}
	return min(s.opts.Steps, b.room())
}

// reserve gets the blocks that a sequence needs in a round. Where there are none, the sequence that arrived last gives
// its own away. It reports false if that is the one.
func (s *Scheduler) reserve(i int, r Round) bool {
	b := s.slots[i]
	if b == nil {
		return false // preempted
	}
	tokens := b.computed + max(min(len(b.pending()), r.Width), s.samples(b, r))
	for !s.tree.grow(b, blocksOf(tokens, s.opts.Each)) {
		last := i // the sequence that arrived last
		for j, b := range s.slots {
			if b != nil && b.task.arrival > s.slots[last].task.arrival {
				last = j
			}
		}
		s.preempt(last)
		s.stats.Preempted++
		if last == i {
			return false
		}
	}
	return true
}

// choose returns the slots of the next round, in order of arrival, and their class.
func (s *Scheduler) choose() ([]int, class) {
	prompts, decoding := s.sorted()
	switch {
	case len(decoding) == 0:
		return s.choosePrompts(prompts, max(2, s.opts.Budget))
	case len(prompts) == 0 || s.decodesFirst(decoding):
		return s.chooseDecoding(decoding)
	}
	return s.choosePrompts(prompts, max(2, s.opts.Budget/2)) // more than one: decoding is another class
}

// sorted returns the slots of sequences that compute more than one token, and of the others, in order of arrival.
func (s *Scheduler) sorted() (prompts, decoding []int) {
	for i, b := range s.slots {
		switch {
		case b == nil:
		case len(b.pending()) > 1:
			prompts = append(prompts, i)
		default:
			decoding = append(decoding, i)
		}
	}
	byArrival := func(i, j int) int { return s.slots[i].task.arrival - s.slots[j].task.arrival }
	slices.SortFunc(prompts, byArrival)
	slices.SortFunc(decoding, byArrival)
	return prompts, decoding
}

// decodesFirst reports whether decoding goes before prompts: every other round, or if it has waited for long where a
// call decodes many tokens.
func (s *Scheduler) decodesFirst(decoding []int) bool {
	if s.opts.Steps == 1 {
		return s.prefill
	}
	return slices.ContainsFunc(decoding, func(i int) bool { return s.slots[i].waited >= patience })
}

// choosePrompts returns the oldest sequence, and those of its class that the budget allows.
func (s *Scheduler) choosePrompts(prompts []int, budget int) (slots []int, c class) {
	for _, i := range prompts {
		of := s.class(s.slots[i], budget)
		if len(slots) == 0 {
			c = of
		}
		if of == c && (len(slots) == 0 || (len(slots)+1)*c.width <= budget) {
			slots = append(slots, i)
		}
	}
	return slots, c
}

// chooseDecoding returns all sequences of the class that has waited for the longest time, of equals that of most.
func (s *Scheduler) chooseDecoding(decoding []int) (slots []int, best class) {
	waited, count := map[class]int{}, map[class]int{}
	for _, i := range decoding {
		c := s.class(s.slots[i], 1)
		waited[c], count[c] = max(waited[c], s.slots[i].waited), count[c]+1
	}
	for at, i := range decoding {
		c := s.class(s.slots[i], 1)
		if at == 0 || waited[c] > waited[best] || waited[c] == waited[best] && count[c] > count[best] {
			best = c
		}
	}
	for _, i := range decoding {
		if s.class(s.slots[i], 1) == best {
			slots = append(slots, i)
		}
	}
	return slots, best
}

// class returns the class of a sequence that may compute so many tokens.
func (s *Scheduler) class(b *sequence, budget int) class {
	width := s.opts.Widths.Fit(min(len(b.pending()), budget))
	return class{b.task.Adapter, width, b.task.Single && width == 1 && s.opts.Steps > 1}
}

// decodes reports whether a class is served by decoding calls.
func (s *Scheduler) decodes(c class) bool { return c.width == 1 && s.opts.Steps > 1 && !c.single }

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
		if n := CommonPrefix(b.tokens, t.tokens[:len(t.tokens)-1]); n >= least && b.computed < n {
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
