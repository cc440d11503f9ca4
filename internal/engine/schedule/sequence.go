package schedule

import (
	"cmp"
	"fmt"
	"slices"
)

// sequence is a task that runs.
type sequence struct {
	task     *Task
	root     *node
	tokens   []int32 // known: those that are computed, then those to compute next
	computed int
	path     []*node // the blocks of the tokens, in their order
	table    []int32 // their numbers
	waited   int     // rounds since the last progress
}

// pending returns the tokens to compute next.
func (b *sequence) pending() []int32 { return b.tokens[b.computed:] }

// room returns how many tokens the limit of the task allows after those that are computed and one more.
func (b *sequence) room() int { return b.task.Limit - b.computed - 1 }

// last is the last node, or the root.
func (b *sequence) last() *node {
	if len(b.path) == 0 {
		return b.root
	}
	return b.path[len(b.path)-1]
}

// append adds a block.
func (b *sequence) append(n *node) {
	b.path, b.table = append(b.path, n), append(b.table, n.block)
}

// grow adds blocks until there are so many, and reports whether it could.
func (t *tree) grow(b *sequence, count int) bool {
	for len(b.path) < count {
		n := t.add(b.last(), len(b.path)+1 < count)
		if n == nil {
			return false
		}
		b.append(n)
	}
	return true
}

// Computed records that the next n tokens of a sequence are in the cache, and reports whether those are all, so that a
// token can be sampled.
func (s *Scheduler) Computed(slot, n int) (done bool) {
	b := s.slots[slot]
	if n > len(b.pending()) {
		panic(fmt.Sprintf("schedule: %d tokens computed of %d", n, len(b.pending())))
	}
	each := s.opts.Each
	first := b.computed / each
	b.computed += n
	for i := first; i*each < b.computed; i++ {
		s.tree.fill(b.path[i], b.tokens[i*each:min(b.computed, (i+1)*each)])
	}
	b.waited = 0
	return len(b.pending()) == 0
}

// Push records the token that was sampled after all others were computed. It is computed next.
func (s *Scheduler) Push(slot int, id int32) {
	b := s.slots[slot]
	b.tokens = append(b.tokens, id)
}

// Room returns how many tokens the limit of a task allows after those that are computed and one more.
func (s *Scheduler) Room(slot int) int { return s.slots[slot].room() }

// Finish ends a sequence. Its blocks stay cached.
func (s *Scheduler) Finish(slot int) {
	s.leave(slot)
	// The blocks of adapters that were not used for the longest time go, if there are too many.
	var unused []*node
	for _, r := range s.tree.roots {
		if r.refs == 0 {
			unused = append(unused, r)
		}
	}
	slices.SortFunc(unused, func(a, b *node) int { return cmp.Or(b.used-a.used, b.number-a.number) })
	for _, r := range unused[min(keptAdapters, len(unused)):] {
		s.tree.removeBelow(r)
	}
}

// leave takes a sequence from its slot, and its references to blocks.
func (s *Scheduler) leave(slot int) {
	b := s.slots[slot]
	s.slots[slot] = nil
	for _, n := range slices.Backward(b.path) {
		s.tree.release(n, s.round)
	}
	s.tree.release(b.root, s.round)
	s.tree.forget(b.root)
}

// Discard ends a sequence whose numbers are damaged. It returns its blocks that no other sequence uses, which are free:
// they must be cleared.
func (s *Scheduler) Discard(slot int) (cleared []int32) {
	path := s.slots[slot].path
	s.Finish(slot)
	for _, n := range slices.Backward(path) {
		if n.listed && n.refs > 0 {
			break
		}
		if n.listed {
			cleared = append(cleared, s.tree.removeBelow(n)...)
			s.tree.remove(n)
		}
		cleared = append(cleared, n.block)
	}
	return cleared
}

// preempt lets a task wait again, ahead of those that arrived after it.
func (s *Scheduler) preempt(slot int) {
	t := s.slots[slot].task
	t.tokens = s.slots[slot].tokens
	s.leave(slot)
	at, _ := slices.BinarySearchFunc(s.waiting, t.arrival, func(t *Task, n int) int { return t.arrival - n })
	s.waiting = slices.Insert(s.waiting, at, t)
}

// Lost records that the cache is empty. Tasks that ran begin anew.
func (s *Scheduler) Lost() {
	for i, b := range s.slots {
		if b != nil {
			s.preempt(i)
		}
	}
	for _, t := range s.waiting {
		t.Reused = 0
	}
	s.tree = newTree(s.opts.Blocks, s.opts.Each, &s.stats)
}
