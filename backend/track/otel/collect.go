package otel

import (
	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/track"
)

// collector makes spans of the rollouts that have ended.
type collector struct {
	t        *Tracker
	spans    *builder
	rollouts *track.Rollouts
}

func newCollector(t *Tracker) *collector {
	c := &collector{t: t, spans: newBuilder(t.opts)}
	c.rollouts = track.NewRollouts(c.rollout, func(e art.CompletionEvent) { c.export(c.spans.lone(e)) })
	return c
}

// take handles an event.
func (c *collector) take(event any) {
	if e, ok := event.(art.CompletionEvent); ok {
		c.t.metrics.completion(e)
	}
	c.rollouts.Take(event)
}

// rollout exports a rollout.
func (c *collector) rollout(r *track.Rollout) {
	c.t.metrics.rollout(r)
	c.export(c.spans.rollout(r))
}

// export queues spans.
func (c *collector) export(b batch) {
	if !c.t.batches.Send(b) && c.t.batches.Lost() == 1 {
		c.t.opts.Logger.Warn("the receiver of traces is too slow: spans are dropped")
	}
}
