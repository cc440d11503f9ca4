// Package schedule decides what an engine computes next, and for which requests. It knows token ids and slots, and
// nothing of devices, weights or time, so that every decision can be tested with a table.
//
// A slot is a row of the batch and its part of the KV cache. A task is a request that waits for a slot or has one. The
// engine asks for decisions, carries them out, and reports what came of it:
//
//	s.Submit(task)                   a request arrives
//	placement, ok := s.Place()       a waiting task gets a slot, and perhaps a cached prefix of another slot
//	round, ok := s.Next()            the rows that the device computes together
//	done := s.Computed(slot, n)      the keys and values of n tokens are in the cache
//	s.Push(slot, id)                 a token was sampled; it is computed next
//	s.Finish(slot)                   the reply has ended; the slot keeps its cache for a prompt that continues it
//
// # Decisions
//
//   - Tasks are placed in order of arrival ([Scheduler.Place]).
//   - A task goes to the idle slot whose whole cache is a prefix of its prompt, else to the least recently used
//     idle slot. It begins with a copy of the longest prefix that any slot has cached for the same adapter, so that a
//     conversation continues in its slot and the samples of a group compute their prompt once.
//   - Prompts are computed in chunks of at most the largest width. Rows of a round have the same adapter and, after
//     padding, the same width: the pair that most slots need is next, unless a slot has waited for 8 rounds
//     ([Scheduler.Next]).
//   - If the device decodes many tokens in one call, decoding waits until no slot computes its prompt, so that a call
//     serves as many slots as possible.
//   - If the device loses the cache, tasks compute again what they had there ([Scheduler.Lost]).
package schedule

// Task is a request as the scheduler sees it.
type Task struct {
	Prompt []int32 // at least one token; not changed
	// Adapter identifies the weights. Tasks share rounds and cached tokens only if their adapters are equal (==).
	Adapter any
	// Limit is the number of tokens that prompt and reply may have together.
	Limit int
	// Single says that the host samples each token: decoding calls that sample many leave the task out.
	Single bool
	// Reused is the number of prompt tokens that were found in the cache. The scheduler sets it.
	Reused int
}

// Options are the dimensions of an engine.
type Options struct {
	Slots  int
	Widths Sizes // numbers of tokens per row that rounds are compiled for; the largest bounds the chunk of a prompt
	Steps  int   // tokens per slot that a decoding call samples; 1: decoding rounds compute one token each
}

// Scheduler holds the waiting tasks and the slots. It is not safe for concurrent use.
type Scheduler struct {
	opts    Options
	slots   []slot
	waiting []*Task // in order of arrival
	round   int
}

// New returns a scheduler whose slots are idle and whose cache is empty.
func New(opts Options) *Scheduler {
	return &Scheduler{opts: opts, slots: make([]slot, opts.Slots)}
}

// Submit adds a task to the queue.
func (s *Scheduler) Submit(t *Task) { s.waiting = append(s.waiting, t) }

// Drop removes the waiting tasks for which gone returns true.
func (s *Scheduler) Drop(gone func(*Task) bool) {
	kept := s.waiting[:0]
	for _, t := range s.waiting {
		if !gone(t) {
			kept = append(kept, t)
		}
	}
	clear(s.waiting[len(kept):])
	s.waiting = kept
}

// Waiting returns the number of tasks without a slot.
func (s *Scheduler) Waiting() int { return len(s.waiting) }

// Free returns the number of idle slots.
func (s *Scheduler) Free() int {
	n := 0
	for i := range s.slots {
		if s.slots[i].task == nil {
			n++
		}
	}
	return n
}

// Idle reports whether there is nothing to do.
func (s *Scheduler) Idle() bool { return len(s.waiting) == 0 && s.Free() == len(s.slots) }

// Prefilling reports whether a slot still computes its prompt.
func (s *Scheduler) Prefilling() bool {
	for i := range s.slots {
		if b := &s.slots[i]; b.task != nil && len(b.pending()) > 1 {
			return true
		}
	}
	return false
}

// Running calls f with each slot that has a task. f may call [Scheduler.Finish] for that slot.
func (s *Scheduler) Running(f func(slot int, t *Task)) {
	for i := range s.slots {
		if t := s.slots[i].task; t != nil {
			f(i, t)
		}
	}
}
