package art

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// draw is what a pipeline runs, trains on or drops at once: one turn of a scenario, or a group of a source.
type draw struct {
	number   int          // counts the turns of all scenarios from the beginning of the run
	first    atomic.Int64 // step at which its first rollout began, unbegun before
	share    *share       // of the slots, nil of a source
	groups   []*TrajectoryGroup
	failures []cell // of rollouts
	rollouts int    // that ended
	err      error  // ends the pipeline, unless it is errStale
	cancel   context.CancelCauseFunc
}

// unbegun is the first step of a draw without one.
const unbegun = math.MinInt64

func newDraw(number int, cancel context.CancelCauseFunc) *draw {
	d := &draw{number: number, cancel: cancel}
	d.first.Store(unbegun)
	return d
}

// age is the number of steps from the one at which the draw began.
func (d *draw) age(step int) int {
	if first := d.first.Load(); first != unbegun {
		return step - int(first)
	}
	return 0
}

// dataset draws scenarios in a shuffled order, epoch after epoch.
type dataset struct {
	opts    *PipelineOptions
	model   *Model
	count   int // of scenarios
	rollout func(ctx context.Context, scenario int) (*Trajectory, error)
	slots   *slots

	at     dataPosition
	newest *draw // that has begun
	next   int   // number of the next draw
	repeat []int // draws to run again before
	epoch  int   // that order is of
	order  []int
}

// dataPosition says which draws are done.
type dataPosition struct {
	Next int   `json:"next"` // all before it
	Done []int `json:"done"` // and these
}

// add marks a draw as done.
func (p *dataPosition) add(number int) {
	at, there := slices.BinarySearch(p.Done, number)
	if there || number < p.Next {
		return
	}
	p.Done = slices.Insert(p.Done, at, number)
	for len(p.Done) > 0 && p.Done[0] == p.Next {
		p.Next, p.Done = p.Next+1, p.Done[1:]
	}
}

// dataState is what a run stores of a pipeline.
type dataState struct {
	Scenarios int    `json:"scenarios"`
	Seed      string `json:"seed"`
	// Steps has the position at a step, by its number; null deletes one.
	Steps map[string]*dataPosition `json:"steps"`
}

// restore continues at the stored position, if there is one: that of the newest step up to the model's.
func (d *dataset) restore(ctx context.Context) error {
	var stored struct {
		Pipeline map[string]*dataState `json:"pipeline"`
	}
	if _, err := d.model.LoadState(ctx, &stored); err != nil {
		if errors.Is(err, ErrUnsupported) {
			return nil
		}
		return err
	}
	state := stored.Pipeline[d.opts.Name]
	if state == nil {
		return nil
	}
	if state.Scenarios != d.count || state.Seed != d.seed() {
		err := fmt.Errorf("%w: the run has begun with %d scenarios and seed %s, and is continued with %d and %s", ErrInvalid,
			state.Scenarios, state.Seed, d.count, d.seed())
		return &Error{"pipeline", err, "continue with the same ones, or begin these anew with another PipelineOptions.Name"}
	}
	newest := -1
	for key, at := range state.Steps {
		if step, err := strconv.Atoi(key); err == nil && at != nil && step > newest && step <= d.model.Step() {
			newest, d.at = step, *at
		}
	}
	d.next = d.at.Next
	return nil
}

func (d *dataset) seed() string { return strconv.FormatUint(d.opts.Gather.Seed, 10) }

// save stores the position before and after the step that is about to be made. So the position is right whether or not
// a process that is killed has committed the step.
func (d *dataset) save(ctx context.Context, step int, batch []*draw) error {
	after := dataPosition{d.at.Next, slices.Clone(d.at.Done)}
	for _, x := range batch {
		after.add(x.number)
	}
	state := dataState{d.count, d.seed(), map[string]*dataPosition{
		strconv.Itoa(step - 1): nil, strconv.Itoa(step): &d.at, strconv.Itoa(step + 1): &after,
	}}
	err := d.model.SaveState(ctx, map[string]any{"pipeline": map[string]any{d.opts.Name: state}})
	if errors.Is(err, ErrUnsupported) {
		return nil
	}
	return err
}

// settle marks a draw as done, or puts it back.
func (d *dataset) settle(x *draw, repeat bool) {
	if repeat {
		d.repeat = append(d.repeat, x.number)
		return
	}
	d.at.add(x.number)
}

func (d *dataset) changed() <-chan struct{} { return d.slots.freed }

func (d *dataset) busy() (time.Duration, bool) { return d.slots.take(), true }

// total is the number of draws.
func (d *dataset) total() int {
	if d.opts.Epochs < 0 {
		return math.MaxInt
	}
	return d.opts.Epochs * d.count
}

func (d *dataset) exhausted() bool {
	d.skipDone()
	return len(d.repeat) == 0 && d.next >= d.total()
}

// skipDone moves next to a draw that is not done.
func (d *dataset) skipDone() {
	for slices.Contains(d.at.Done, d.next) {
		d.next++
	}
}

// begin implements supply. Draws begin one after the other, each when those before have a slot for all rollouts: so the
// first ones end first.
func (d *dataset) begin(ctx context.Context, ended chan<- *draw) *draw {
	if ctx.Err() != nil || d.exhausted() || !d.slots.free() || d.newest != nil && d.newest.share.waiting.Load() > 0 {
		return nil
	}
	number := d.next
	if len(d.repeat) > 0 {
		number, d.repeat = d.repeat[0], d.repeat[1:]
	} else {
		d.next++
	}
	ctx, cancel := context.WithCancelCause(ctx)
	x := newDraw(number, cancel)
	x.share = newShare(d.slots, d.opts.Gather.GroupSize+d.opts.Gather.Extra)
	d.newest = x
	scenario := d.scenario(number)
	go func() {
		defer cancel(nil)
		d.gather(ctx, x, scenario)
		x.share.waiting.Store(0) // of rollouts that were cut before they began
		ended <- x
	}()
	return x
}

// scenario returns the scenario of a draw.
func (d *dataset) scenario(number int) int {
	if epoch := number / d.count; d.order == nil || epoch != d.epoch {
		order := BatchOptions{Seed: d.opts.Gather.Seed, InOrder: d.opts.InOrder}
		d.epoch, d.order = epoch, order.order(epoch, d.count)
	}
	return d.order[number%d.count]
}

// gather runs the rollouts of a draw.
func (d *dataset) gather(ctx context.Context, x *draw, scenario int) {
	o := *d.opts.Gather
	o.Seed = mix(seedDraw, o.Seed, uint64(x.number))
	o.Concurrency = o.GroupSize + o.Extra
	o.MaxFailures = o.Concurrency // they are counted over all groups
	g := newGathering(o, 1, func(ctx context.Context, scenario int) (*Trajectory, error) {
		x.first.CompareAndSwap(unbegun, int64(d.model.Step()))
		return d.rollout(ctx, scenario)
	})
	g.first, g.share = scenario, x.share
	x.groups, x.err = g.run(ctx)
	for _, c := range g.cells {
		if c.failure != nil {
			x.failures = append(x.failures, c)
		}
		if c.failure != nil || c.trajectory != nil {
			x.rollouts++
		}
	}
	for _, group := range x.groups {
		if _, own := group.Metadata["scenario"]; !own && group.Metadata != nil {
			group.Metadata["scenario"] = scenario
		}
	}
}

// check returns an error when too many rollouts have failed since the last training began.
func (w *window) check(o *PipelineOptions) error {
	of := max(w.rollouts, o.Groups*o.Gather.GroupSize)
	allowed := max(o.Gather.MaxFailures, int(math.Floor(o.Gather.MaxFailureFraction*float64(of)+1e-9)))
	if w.failures.n <= allowed {
		return nil
	}
	count := fmt.Sprintf("%d before a step, at most %d allowed", w.failures.n, allowed)
	return w.failures.tooMany("pipeline", count, "PipelineOptions.Gather.")
}

// inflow draws groups from a source, one after the other.
type inflow struct {
	source GroupSource
	model  *Model
	asking atomic.Bool
	over   atomic.Bool
}

// begin implements supply.
func (s *inflow) begin(ctx context.Context, ended chan<- *draw) *draw {
	if ctx.Err() != nil || s.asking.Load() || s.over.Load() {
		return nil
	}
	s.asking.Store(true)
	x := newDraw(0, func(error) {}) // what has not come cannot be cancelled
	go func() {
		o := guard(ctx, func() (*TrajectoryGroup, error) { return s.source.Next(ctx) })
		switch {
		case errors.Is(o.err, io.EOF):
			s.over.Store(true)
		case o.err != nil:
			x.err = o.err
		case o.value != nil:
			x.groups = []*TrajectoryGroup{o.value}
			x.first.Store(int64(oldestStep(o.value, s.model.Step())))
		}
		s.asking.Store(false)
		ended <- x
	}()
	return x
}

// oldestStep returns the lowest step among the samples of a group, and current when there are none.
func oldestStep(g *TrajectoryGroup, current int) int {
	oldest := current
	for _, t := range g.Trajectories {
		if t == nil {
			continue
		}
		if first, _, ok := t.PolicySteps(); ok {
			oldest = min(oldest, first)
		}
	}
	return oldest
}

func (s *inflow) exhausted() bool { return s.over.Load() }

func (s *inflow) settle(*draw, bool) {}

func (s *inflow) save(context.Context, int, []*draw) error { return nil }

func (s *inflow) changed() <-chan struct{} { return nil }

func (s *inflow) busy() (time.Duration, bool) { return 0, false }
