package engine

import "github.com/goart-dev/art/internal/engine/schedule"

// Stats say what an engine does, after its last round.
type Stats struct {
	Running, Waiting int // requests
	Blocks           int // of the KV cache
	Free             int // of them, those that hold nothing,
	Cached           int // and those that hold tokens of earlier requests only
	Totals
	schedule.Stats // since the start
}

// Totals count what an engine has computed since the start.
type Totals struct {
	Rounds    int // calls of the device
	Steps     int // of the loops of calls that decode many tokens, each of which makes a token of each slot
	Shared    int // of these steps, those that read once what the slots have in common
	Prefilled int // tokens of prompts, and of replies that had lost their blocks
	Sampled   int // tokens of replies
}

// Stats returns what the engine does. Waiting has the requests that it has not taken yet.
func (e *Engine) Stats() Stats {
	s := *e.stats.Load()
	s.Waiting = max(s.Waiting, int(e.inside.Load())-s.Running)
	return s
}

// add adds the stats of another engine.
func (s *Stats) add(o Stats) {
	s.Running, s.Waiting = s.Running+o.Running, s.Waiting+o.Waiting
	s.Blocks, s.Free, s.Cached = s.Blocks+o.Blocks, s.Free+o.Free, s.Cached+o.Cached
	s.Rounds, s.Steps, s.Shared = s.Rounds+o.Rounds, s.Steps+o.Steps, s.Shared+o.Shared
	s.Prefilled, s.Sampled = s.Prefilled+o.Prefilled, s.Sampled+o.Sampled
	s.Preempted, s.Evicted = s.Preempted+o.Preempted, s.Evicted+o.Evicted
	s.Copied, s.Reused = s.Copied+o.Copied, s.Reused+o.Reused
}

// count counts the tokens of a round.
func (l *loop) count(r schedule.Round) {
	l.totals.Rounds++
	for _, row := range r.Rows {
		if len(row.Tokens) > 1 || len(l.jobs[row.Task].result.IDs) == 0 {
			l.totals.Prefilled += len(row.Tokens)
		}
	}
}

// publish sets the stats.
func (l *loop) publish() {
	free, cached := l.sched.Blocks()
	l.stats.Store(&Stats{
		Running: l.opts.Slots - l.sched.Free(), Waiting: l.sched.Waiting(),
		Blocks: l.runner.shapes.Blocks - 1, Free: free, Cached: cached, Totals: l.totals, Stats: l.sched.Stats(),
	})
}
