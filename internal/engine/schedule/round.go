package schedule

// patience is the number of rounds after which a slot goes before larger groups.
const patience = 8

// Round is what the device computes in one call.
type Round struct {
	Rows   []Row
	Width  int  // tokens of each row, padded
	Decode bool // a call that samples up to Row.Samples tokens for each slot, rather than one that computes Row.Tokens
}

// Row is the part of a slot in a round.
type Row struct {
	Task    *Task
	Slot    int
	Start   int     // tokens in the cache
	Tokens  []int32 // to compute; valid until the slot changes
	Samples int     // decoding: tokens to sample, at most
}

// class is what the rows of a round have in common.
type class struct {
	adapter any
	width   int
	single  bool // see [Task.Single]; only where it makes a difference
}

// Next starts a round. It reports false if no slot has a task.
func (s *Scheduler) Next() (Round, bool) {
	c, ok := s.choose()
	if !ok {
		return Round{}, false
	}
	s.round++
	r := Round{Width: c.width, Decode: s.decodes(c)}
	for i := range s.slots {
		b := &s.slots[i]
		if b.task == nil {
			continue
		}
		b.waited++
		if s.class(b) == c {
			r.Rows = append(r.Rows, s.row(i, r))
		}
	}
	return r, true
}

// row returns the part of a slot in a round.
func (s *Scheduler) row(i int, r Round) Row {
	b := &s.slots[i]
	row := Row{Task: b.task, Slot: i, Start: b.computed, Tokens: b.pending()[:min(len(b.pending()), r.Width)]}
	if r.Decode {
		row.Samples = min(s.opts.Steps, s.Room(i))
	}
	return row
}

// choose returns the class of most slots, the narrower one if there are two, or that of the first slot that has waited
// too long.
func (s *Scheduler) choose() (best class, ok bool) {
	count := map[class]int{}
	prefilling := s.Prefilling()
	for i := range s.slots {
		b := &s.slots[i]
		if b.task == nil {
			continue
		}
		c := s.class(b)
		if b.waited >= patience {
			return c, true
		}
		if prefilling && s.decodes(c) {
			continue // a decoding call serves as many slots as possible: all prompts first
		}
		count[c]++
		if n := count[c]; n > count[best] || n == count[best] && c.width < best.width {
			best = c
		}
	}
	return best, count[best] > 0
}

// class returns the class of a slot.
func (s *Scheduler) class(b *slot) class {
	width := s.opts.Widths.Fit(len(b.pending()))
	return class{b.adapter, width, b.task.Single && width == 1 && s.opts.Steps > 1}
}

// decodes reports whether a class is served by decoding calls.
func (s *Scheduler) decodes(c class) bool { return c.width == 1 && s.opts.Steps > 1 && !c.single }
