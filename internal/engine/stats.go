package engine

import "github.com/goart-dev/art/internal/engine/schedule"

// Stats say what an engine does, after its last round.
type Stats struct {
	Running, Waiting int // requests; more may wait to be taken by the engine
	Blocks           int // of the KV cache
	Free             int // of them, those that hold nothing,
	Cached           int // and those that hold tokens of earlier requests only
	schedule.Stats       // since the start
}

// Stats returns what the engine does.
func (e *Engine) Stats() Stats { return *e.stats.Load() }

// publish sets the stats.
func (l *loop) publish() {
	free, cached := l.sched.Blocks()
	l.stats.Store(&Stats{
		Running: l.opts.Slots - l.sched.Free(), Waiting: l.sched.Waiting(),
		Blocks: l.opts.blocks() - 1, Free: free, Cached: cached, Stats: l.sched.Stats(),
	})
}
