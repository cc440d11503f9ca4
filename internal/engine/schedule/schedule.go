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
