package otel

import (
	"time"

	"github.com/goart-dev/art"
)

// maxRollouts bounds the rollouts whose group has not ended. Beyond it the oldest are exported as they are.
const maxRollouts = 8192

// rollout is what is known of a rollout.
type rollout struct {
	start       art.RolloutStart
	completions []art.CompletionEvent
	end         *art.RolloutEnd // nil while it runs
}

// key names a rollout.
type key struct {
	gather            uint64
	scenario, attempt int
}

func keyOf(r art.RolloutStart) key { return key{r.Gather, r.Scenario, r.Attempt} }

// collector gathers the events of each rollout.
type collector struct {
	t     *Tracker
	spans *builder
	open  map[key]*rollout
	order []key // of open, and of some that are not any more
}

func newCollector(t *Tracker) *collector {
	return &collector{t: t, spans: newBuilder(t.opts), open: map[key]*rollout{}}
}

// take handles an event.
func (c *collector) take(e any) {
	switch e := e.(type) {
	case art.RolloutStart:
		c.start(e)
	case art.CompletionEvent:
		c.t.metrics.completion(e)
		if r := c.rolloutOf(e); r != nil {
			r.completions = append(r.completions, e)
		} else {
			c.export(c.spans.lone(e))
		}
	case art.RolloutEnd:
		if r := c.open[keyOf(e.RolloutStart)]; r != nil {
			r.end = &e
		}
	case art.GroupEnd:
		c.end(func(k key) bool { return k.gather == e.Gather && k.scenario == e.Scenario })
	case art.GatherEnd:
		c.end(func(k key) bool { return k.gather == e.Gather })
	}
}

// rolloutOf returns the rollout that a completion belongs to, nil when it is not known.
func (c *collector) rolloutOf(e art.CompletionEvent) *rollout {
	if e.Rollout == nil {
		return nil
	}
	return c.open[keyOf(*e.Rollout)]
}

func (c *collector) start(e art.RolloutStart) {
	k := keyOf(e)
	c.open[k] = &rollout{start: e}
	c.order = append(c.order, k)
	for len(c.open) > maxRollouts {
		oldest := c.order[0]
		c.order = c.order[1:]
		c.close(oldest)
	}
}

// end exports the rollouts that match.
func (c *collector) end(match func(k key) bool) {
	rest := c.order[:0]
	for _, k := range c.order {
		if match(k) {
			c.close(k)
		} else if c.open[k] != nil {
			rest = append(rest, k)
		}
	}
	c.order = rest
}

// close exports a rollout. Of one that was cancelled, completions may be all there is.
func (c *collector) close(k key) {
	r := c.open[k]
	if r == nil {
		return
	}
	delete(c.open, k)
	c.t.metrics.rollout(r)
	c.export(c.spans.rollout(r))
}

// finish exports what is left.
func (c *collector) finish() { c.end(func(key) bool { return true }) }

// export queues spans.
func (c *collector) export(b batch) {
	if !c.t.batches.Send(b) && c.t.batches.Lost() == 1 {
		c.t.opts.Logger.Warn("the receiver of traces is too slow: spans are dropped")
	}
}

// finished is when a rollout ended, or when its last completion did.
func (r *rollout) finished() time.Time {
	if r.end != nil {
		return r.start.Time.Add(r.end.Duration)
	}
	last := r.start.Time
	for _, c := range r.completions {
		if at := c.Time.Add(c.Duration); at.After(last) {
			last = at
		}
	}
	return last
}
