// Package schedule decides what an engine computes next, for which requests, and what of it is in the KV cache already.
// It knows token ids and the numbers of blocks, and nothing of devices, weights or time, so that every decision can be
// tested with a table.
//
// The cache is blocks of some tokens each. A sequence is a request that runs: its tokens, and the blocks that hold the
// keys and values of those that are computed. A task is the request, whether it runs or waits. The engine asks for
// decisions, carries them out, and reports what came of it:
//
//	s.Submit(task)                   a request arrives
//	placement, ok := s.Place()       a waiting task begins to run, perhaps with tokens that are cached
//	round, ok := s.Next()            the rows that the device computes together
//	done := s.Computed(slot, n)      the keys and values of n tokens are in the cache
//	s.Push(slot, id)                 a token was sampled; it is computed next
//	s.Finish(slot)                   the reply has ended; its blocks stay cached until others need them
//
// # Decisions
//
//   - Blocks are the nodes of a tree over token ids, one tree for each adapter. Sequences with the same first tokens
//     have the same blocks; where they part within a block, the later one gets a copy of it ([Scheduler.Place]). So the
//     samples of a prompt, the turns of a conversation and all that begin with a system prompt compute it once.
//   - A task whose first tokens a running sequence is about to compute waits for that, and others go first.
//   - Tasks run in order of arrival, once there are blocks for all tokens that they have. A reply takes further blocks
//     as it grows. Blocks that no sequence uses are given away, the least recently used ones first.
//   - If there are none, the sequence that arrived last gives its blocks away and waits again, ahead of all that came
//     after it. What is not cached any more by then is computed again, which changes no bit. The one that arrived first
//     always goes on.
//   - Prompts are computed in chunks, of the oldest sequence first, in turns with decoding, so that neither stalls the
//     other. Rows of a round have one adapter and, after padding, one width. Adapters decode in turns
//     ([Scheduler.Next]).
//   - If the device decodes many tokens in one call, prompts go first, so that a call serves as many sequences as
//     possible.
//   - If the device loses the cache, all tasks begin anew ([Scheduler.Lost]).
package schedule

import (
	"cmp"
	"fmt"
	"slices"
)

// Task is a request as the scheduler sees it.
type Task struct {
	Prompt []int32 // at least one token; not changed
	// Adapter identifies the weights. Tasks share rounds and cached tokens only if their adapters are equal (==).
	Adapter any
	// Limit is the number of tokens that prompt and reply may have together.
	Limit int
	// Single says that the host samples each token: decoding calls that sample many leave the task out.
	Single bool
	// Reused is the number of prompt tokens that were found in the cache when the task first ran. The scheduler sets it.
	Reused int

	tokens  []int32   // prompt, and what of the reply was sampled before the task had to wait again
	arrival int       // number among all tasks
	ran     bool      // Reused is set
	behind  *sequence // computes tokens that the task waits for,
	until   int       // so many
}

// Options are the dimensions of an engine.
type Options struct {
	Slots  int   // sequences that run at once
	Blocks int   // of the cache; block 0 is not used
	Each   int   // tokens of a block
	Widths Sizes // numbers of tokens per row that rounds are compiled for; the largest bounds the chunk of a prompt
	Steps  int   // tokens per sequence that a decoding call samples; 1: decoding rounds compute one token each
	// Budget is the number of tokens, with padding, that a round computes of prompts; while others decode, half of it.
	Budget int
}

// Scheduler holds the waiting tasks, the sequences and the tree of blocks. It is not safe for concurrent use.
type Scheduler struct {
	opts    Options
	slots   []*sequence // nil: free
	waiting []*Task     // in order of arrival
	arrived int
	tree    *tree
	round   int
	prefill bool // the round before computed prompts
	stats   Stats
}

// Stats count what happened.
type Stats struct {
	Preempted int // sequences that gave their blocks away
	Evicted   int // cached blocks that were given away
	Copied    int // blocks that were copied, because sequences part within them
	Reused    int // tokens of prompts that were cached
}

// New returns a scheduler whose cache is empty. Options must have a block for each token of the largest task, and one
// more.
func New(opts Options) *Scheduler {
	s := &Scheduler{opts: opts, slots: make([]*sequence, opts.Slots)}
	s.tree = newTree(opts.Blocks, opts.Each, &s.stats)
	return s
}

// Submit adds a task to the queue.
func (s *Scheduler) Submit(t *Task) {
	if need := blocksOf(t.Limit, s.opts.Each); need >= s.opts.Blocks {
		panic(fmt.Sprintf("schedule: a task needs %d blocks of %d", need, s.opts.Blocks-1))
	}
	t.tokens, t.arrival = slices.Clip(t.Prompt), s.arrived
	s.arrived++
	s.waiting = append(s.waiting, t)
}

// Drop removes the waiting tasks for which gone returns true.
func (s *Scheduler) Drop(gone func(*Task) bool) {
	s.waiting = slices.DeleteFunc(s.waiting, gone)
}

// Waiting returns the number of tasks that do not run.
func (s *Scheduler) Waiting() int { return len(s.waiting) }

// Free returns the number of sequences that may run besides those that do.
func (s *Scheduler) Free() int {
	n := 0
	for _, b := range s.slots {
		if b == nil {
			n++
		}
	}
	return n
}

// Idle reports whether there is nothing to do.
func (s *Scheduler) Idle() bool { return len(s.waiting) == 0 && s.Free() == len(s.slots) }

// Prefilling reports whether a sequence still computes its prompt.
func (s *Scheduler) Prefilling() bool {
	return slices.ContainsFunc(s.slots, func(b *sequence) bool { return b != nil && len(b.pending()) > 1 })
}

// Running calls f with each slot that has a task. f may call [Scheduler.Finish] for that slot.
func (s *Scheduler) Running(f func(slot int, t *Task)) {
	for i, b := range s.slots {
		if b != nil {
			f(i, b.task)
		}
	}
}

// Stats returns what happened so far.
func (s *Scheduler) Stats() Stats { return s.stats }

// Blocks returns how many blocks are free, and how many are cached though no sequence uses them. All others are in use.
func (s *Scheduler) Blocks() (free, cached int) { return s.tree.blocks.free, s.tree.idle }

// blocksOf is the number of blocks of some tokens.
func blocksOf(tokens, each int) int { return (tokens + each - 1) / each }

// Sizes are sizes that graphs are compiled for, ascending.
type Sizes []int

// Fit returns the smallest size that holds n, or the largest if none does.
func (s Sizes) Fit(n int) int {
	for _, size := range s {
		if size >= n {
			return size
		}
	}
	return s.Largest()
}

// Largest returns the largest size.
func (s Sizes) Largest() int { return s[len(s)-1] }

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
