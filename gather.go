package art

import (
	"context"
	"errors"
	"time"
)

// GatherOptions say how rollouts are run. The zero value and a nil *GatherOptions are the defaults.
type GatherOptions struct {
	// GroupSize is the number of trajectories that [GatherGroups] wants of each scenario. Default 4. [Gather] runs one and
	// refuses this option.
	GroupSize int
	// Extra is the number of rollouts of each scenario beyond GroupSize. A group is complete with its first GroupSize
	// trajectories, and the rollouts that are left are cut: their context ends, and what they return is dropped. So a slow
	// or failed rollout holds nothing up. What is kept then depends on timing, and favours short rollouts. Groups have the
	// metric "rollouts_cut". Default 0.
	Extra int
	// Concurrency bounds the rollouts and After hooks that run at once. Default 16. Rollouts that were abandoned after a
	// timeout are not counted.
	Concurrency int
	// Timeout bounds each try of a rollout, by its context. A try that has not returned by then has failed. It has
	// another second to return, then its goroutine is abandoned and its result dropped. Default 0: none.
	Timeout time.Duration
	// Retries is how often a rollout that failed is tried again, with other seeds. Default 0. Errors that a retry cannot
	// fix are not retried: [ErrNotRegistered], [ErrClosed], [ErrFrozen], [ErrUnsupported].
	Retries int
	// Backoff is the pause before the first retry. It doubles with each, up to 30 s, and is shortened by up to half, by an
	// amount that depends on the seed. Default 250 ms.
	Backoff time.Duration
	// MaxFailures and MaxFailureFraction say how many rollouts may fail: the count, or the fraction of all rollouts
	// rounded down, whichever is more. Default 0 and 0: none.
	MaxFailures        int
	MaxFailureFraction float64
	// After is called with each group as soon as it is complete, while other rollouts run: to judge, filter or split it.
	// What it returns replaces the group; an empty list drops it. When it fails, or panics, all trajectories of the group
	// become failures. [Gather] refuses it. May be nil.
	After func(ctx context.Context, g *TrajectoryGroup) ([]*TrajectoryGroup, error)
	// Events are called for rollouts and groups. May be nil.
	Events *Events
	// Seed of the gather. The seed of each completion derives from the run's seed, the step, this seed, and the group,
	// attempt, retry and number of the call in its rollout, so that a run does not depend on timing; concurrent calls of
	// one rollout are numbered in the order in which they arrive. [Rand] and [GroupRand] depend on this seed and not on
	// the model: a training loop whose environment uses them sets it to the step. Default 0.
	Seed uint64
}

// GatherGroups runs rollout GroupSize times for each scenario and returns one group per scenario, in the order of
// scenarios; within a group, trajectories are in the order of attempts. The result does not depend on the order in
// which rollouts end, unless [GatherOptions].Extra is set. opts may be nil.
//
// A rollout that returns an error, panics, times out or returns no trajectory becomes a [Failure] of its group. When
// more fail than the options allow, the others are cancelled, and the groups that are complete are returned together
// with an [ErrTooManyFailures] that quotes and wraps the first failures. When ctx ends, the groups that are complete
// are returned with an error that wraps ctx's. Trajectories without a Duration are finished.
func GatherGroups[S any](
	ctx context.Context, scenarios []S, rollout func(context.Context, S) (*Trajectory, error), opts *GatherOptions,
) ([]*TrajectoryGroup, error) {
	o := opts.withDefaults()
	if err := o.validate(rollout != nil); err != nil {
		return nil, err
	}
	g := newGathering(o, len(scenarios), func(ctx context.Context, i int) (*Trajectory, error) {
		return rollout(ctx, scenarios[i])
	})
	return g.run(ctx)
}

// Gather runs rollout once for each scenario and returns all trajectories as one group, in the order of scenarios: for
// evaluation. Its rollouts have the seeds of the first attempts of [GatherGroups]. Errors are those of [GatherGroups];
// the group, of what is complete, is nil only when the options are invalid.
func Gather[S any](
	ctx context.Context, scenarios []S, rollout func(context.Context, S) (*Trajectory, error), opts *GatherOptions,
) (*TrajectoryGroup, error) {
	o := GatherOptions{}
	if opts != nil {
		o = *opts
	}
	var p problems
	p.check(o.GroupSize == 0, "GroupSize is set")
	p.check(o.Extra == 0, "Extra is set")
	p.check(o.After == nil, "After is set")
	if err := p.err("gather", "use GatherGroups: Gather makes one flat group"); err != nil {
		return nil, err
	}
	o.GroupSize = 1
	groups, err := GatherGroups(ctx, scenarios, rollout, &o)
	if errors.Is(err, ErrInvalid) && groups == nil {
		return nil, err
	}
	flat := newGroup()
	for _, g := range groups {
		flat.Trajectories = append(flat.Trajectories, g.Trajectories...)
		flat.Failures = append(flat.Failures, g.Failures...)
	}
	return flat, err
}

// withDefaults returns a copy with defaults filled in.
func (o *GatherOptions) withDefaults() GatherOptions {
	var d GatherOptions
	if o != nil {
		d = *o
	}
	if d.GroupSize == 0 {
		d.GroupSize = 4
	}
	if d.Concurrency == 0 {
		d.Concurrency = 16
	}
	if d.Events == nil {
		d.Events = &Events{}
	}
	if d.Backoff == 0 {
		d.Backoff = 250 * time.Millisecond
	}
	return d
}

// validate lists every problem.
func (o *GatherOptions) validate(hasRollout bool) error {
	var p problems
	p.check(hasRollout, "rollout is nil")
	o.check(&p)
	return p.err("gather", configHint)
}

// check adds every problem of options with defaults.
func (o *GatherOptions) check(p *problems) {
	p.check(o.GroupSize > 0, "GroupSize is %d, want > 0", o.GroupSize)
	p.check(o.Extra >= 0, "Extra is %d, want >= 0", o.Extra)
	p.check(o.Concurrency > 0, "Concurrency is %d, want > 0", o.Concurrency)
	p.check(o.Timeout >= 0, "Timeout is %v, want >= 0", o.Timeout)
	p.check(o.Retries >= 0, "Retries is %d, want >= 0", o.Retries)
	p.check(o.Backoff > 0, "Backoff is %v, want > 0", o.Backoff)
	p.check(o.MaxFailures >= 0, "MaxFailures is %d, want >= 0", o.MaxFailures)
	fraction := o.MaxFailureFraction
	p.check(fraction >= 0 && fraction <= 1, "MaxFailureFraction is %v, want 0 to 1", fraction)
}
