package track

import (
	"time"

	"github.com/goart-dev/art"
)

// maxRollouts bounds the rollouts whose group has not ended. Beyond it the oldest are handed on as they are.
const maxRollouts = 8192

// Rollout is what is known of a rollout.
type Rollout struct {
	Start       art.RolloutStart
	Completions []art.CompletionEvent
	End         *art.RolloutEnd // nil while it runs, and of one that was cancelled
}

// Finished is when a rollout ended, or when its last completion did.
func (r *Rollout) Finished() time.Time {
	if r.End != nil {
		return r.Start.Time.Add(r.End.Duration)
	}
	last := r.Start.Time
	for _, c := range r.Completions {
		if at := c.Time.Add(c.Duration); at.After(last) {
			last = at
		}
	}
	return last
}

// Rollouts gathers the events of each rollout until its group is complete and judged. It is used by one goroutine.
type Rollouts struct {
	done func(*Rollout)
	lone func(art.CompletionEvent)
	open map[rolloutKey]*Rollout
	// order has the keys of open, and some that are not in it any more.
	order []rolloutKey
}

// rolloutKey names a rollout.
type rolloutKey struct {
	gather            uint64
	scenario, attempt int
}

func keyOf(r art.RolloutStart) rolloutKey { return rolloutKey{r.Gather, r.Scenario, r.Attempt} }

// NewRollouts returns a collection that hands rollouts to done, and completions outside of one to lone.
func NewRollouts(done func(*Rollout), lone func(art.CompletionEvent)) *Rollouts {
	return &Rollouts{done: done, lone: lone, open: map[rolloutKey]*Rollout{}}
}

// RolloutEvents returns callbacks that send what [Rollouts.Take] wants, for [art.ModelOptions] and [art.GatherOptions].
func RolloutEvents(send func(event any)) *art.Events {
	return &art.Events{
		RolloutStart: func(e art.RolloutStart) { send(e) },
		RolloutEnd:   func(e art.RolloutEnd) { send(e) },
		GroupEnd:     func(e art.GroupEnd) { send(e) },
		GatherEnd:    func(e art.GatherEnd) { send(e) },
		Completion:   func(e art.CompletionEvent) { send(e) },
	}
}

// Take handles an event of [RolloutEvents].
func (c *Rollouts) Take(event any) {
	switch e := event.(type) {
	case art.RolloutStart:
		c.start(e)
	case art.CompletionEvent:
		c.complete(e)
	case art.RolloutEnd:
		if r := c.open[keyOf(e.RolloutStart)]; r != nil {
			r.End = &e
		}
	case art.GroupEnd:
		c.end(func(k rolloutKey) bool { return k.gather == e.Gather && k.scenario == e.Scenario })
	case art.GatherEnd:
		c.end(func(k rolloutKey) bool { return k.gather == e.Gather })
	}
}

// Finish hands on what is left.
func (c *Rollouts) Finish() { c.end(func(rolloutKey) bool { return true }) }

// complete adds a completion to its rollout.
func (c *Rollouts) complete(e art.CompletionEvent) {
	if e.Rollout != nil {
		if r := c.open[keyOf(*e.Rollout)]; r != nil {
			r.Completions = append(r.Completions, e)
			return
		}
	}
	c.lone(e)
}

func (c *Rollouts) start(e art.RolloutStart) {
	k := keyOf(e)
	c.open[k] = &Rollout{Start: e}
	c.order = append(c.order, k)
	for len(c.open) > maxRollouts {
		oldest := c.order[0]
		c.order = c.order[1:]
		c.close(oldest)
	}
}

// end hands on the rollouts that match.
func (c *Rollouts) end(match func(k rolloutKey) bool) {
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

// close hands on a rollout. Of one that was cancelled, completions may be all there is.
func (c *Rollouts) close(k rolloutKey) {
	r := c.open[k]
	if r == nil {
		return
	}
	delete(c.open, k)
	c.done(r)
}
