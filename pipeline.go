package art

import (
	"cmp"
	"context"
	"time"

	"github.com/goart-dev/art/grpo/credit"
)

// PipelineOptions say how a [Pipeline] runs. The zero value and a nil *PipelineOptions are the defaults.
type PipelineOptions struct {
	// Steps ends the pipeline when the model is at this step. Default 0: when the scenarios, or the source, end.
	Steps int
	// Epochs is how often all scenarios are run. Default: once, or as often as Steps needs; negative is forever.
	Epochs int
	// InOrder keeps the order of the scenarios. By default each epoch is shuffled, depending on Gather.Seed and the epoch
	// only.
	InOrder bool
	// Groups is the number of groups of a step, the last one excepted, which has what is left. Default 4.
	Groups int
	// MaxGroups is the number up to which a step takes more groups, if they are there when it begins. Default Groups.
	MaxGroups int
	// MaxStaleness is the largest number of steps from the one at which a rollout begins to the one that is trained on it;
	// ART's max_steps_off_policy. Older groups are never trained on. It also bounds what is done in advance: no more than
	// (MaxStaleness + 1) Groups groups are running, waiting or in training. 0 runs and trains in turns, 1 runs the
	// rollouts of the next step during a training. nil is 2.
	MaxStaleness *int
	// RepeatStale runs the scenario of a group that has become too old again, before the next one. By default the next one
	// takes its place. [PipelineFrom] refuses it.
	RepeatStale bool
	// KeepUntrainable counts a group that has no advantages under Train, and so teaches nothing, as a group of the step,
	// whose training skips it. By default such a group is dropped and refilled: the next scenario takes its place, so that
	// each step has Groups groups to learn from (dynamic sampling, Yu et al. 2025). Dropped groups are logged under split
	// "discarded". Which groups have none depends on TrainConfig.Objective: those with equal rewards, and of fewer than K
	// trajectories or other rewards than 0 and 1 where that asks for more. What Schedule changes is not considered.
	KeepUntrainable bool
	// MaxRefill is how many groups may be refilled before a step. Then the step is made of those that are there; without
	// any the pipeline ends with an [ErrCollapsed]. Default 10 x Groups. With KeepUntrainable setting it is an error.
	MaxRefill int
	// Gather says how rollouts are run. Each group is a gather of its own, of one scenario. Concurrency bounds the
	// rollouts of all groups together, and Extra makes them independent of stragglers. MaxFailures and MaxFailureFraction
	// are those of the rollouts that end between two steps, of which there are at least Groups x GroupSize. Events are
	// told of rollouts; those of the model of everything else. nil is the defaults; [PipelineFrom] refuses it.
	Gather *GatherOptions
	// Train is the configuration of all trainings. nil is the defaults.
	Train *TrainConfig
	// Schedule is called before each training with a copy of Train, which it may change: to lower the learning rate. May
	// be nil.
	Schedule func(step int, cfg *TrainConfig)
	// Evaluate measures the policy, with [Gather] as a rule. It is called at each step that is a multiple of EvalEvery and
	// at the last one, unless "val/reward" is logged for it. It runs beside rollouts and training. When the backend is a
	// driver.Pinner, the step answers all calls with its context. What it returns is logged under split "val"; nil is
	// nothing. The next evaluation, and the training of its step, wait for it. An error ends the pipeline. May be nil.
	//
	// With [Retention].Best, let [Retention].Newest be the number of steps that are made during an evaluation or more, so
	// that the best step is not deleted before its reward is known.
	Evaluate func(ctx context.Context) (*TrajectoryGroup, error)
	// EvalEvery defaults to 10. Without Evaluate setting it is an error.
	EvalEvery int
	// Name is the key under which the run stores which scenarios are done; see [Model.SaveState]. Pipelines of one run
	// over different scenarios have different names. Default "default".
	Name string
}

// PipelineResult says what a pipeline has done.
type PipelineResult struct {
	Step    int // of the model
	Steps   int // that were made
	Groups  int // that were trained on
	Dropped map[credit.Reason]int
	// Unused are groups that had ended when the pipeline did.
	Unused []*TrajectoryGroup
}

// Pipeline trains m while rollouts run: rollouts of the next steps begin before a training ends, and none waits for the
// slowest of its batch. A loop over [GatherGroups] and [Model.Train] does the same in turns. opts may be nil.
//
// It runs rollout as [GatherGroups] does, for one scenario after the other. As soon as enough groups have ended it
// trains on them, in the order in which they ended. A rollout may see several policies: each reply is by the newest.
// Its samples say which, so that training corrects for their age.
//
// A run that was interrupted continues with the scenarios that no step was trained on. What was being run or waiting is
// run again, and so are groups that were dropped since the newest step. This needs a backend that is a
// driver.StateKeeper.
//
// Which groups a step has, and which step samples what, depends on timing: two runs of the same seed differ, and so do
// those before and after an interruption. Each step by itself is a function of the groups that are stored with it.
//
// It returns when opts.Steps is reached or the scenarios end, with the result so far also when it fails: [ErrInvalid]
// listing every problem of opts, [ErrTooManyFailures] and [ErrCollapsed] as above, an error of [Model.Train] or of
// Evaluate, or ctx's. A training in progress is completed, unless ctx ends. No goroutine is left, save for rollouts
// that ignore their context.
func Pipeline[S any](
	ctx context.Context, m *Model, scenarios []S, rollout func(context.Context, S) (*Trajectory, error),
	opts *PipelineOptions,
) (*PipelineResult, error) {
	var p problems
	p.check(rollout != nil, "rollout is nil")
	p.check(len(scenarios) > 0, "there are no scenarios")
	o, err := opts.complete(p, m)
	if err != nil {
		return nil, err
	}
	s := &scenarioProducer{opts: &o, model: m, count: len(scenarios), limit: newRolloutLimit(o.Gather.Concurrency)}
	s.rollout = func(ctx context.Context, i int) (*Trajectory, error) { return rollout(ctx, scenarios[i]) }
	if err := s.restore(ctx); err != nil {
		return nil, err
	}
	return newPipeline(m, o, s).run(ctx)
}

// PipelineFrom is [Pipeline] for groups that come from elsewhere: rollouts that other processes run against a server,
// for example. It takes them from source as they come, and is done when there are none. Their age is that of their
// oldest sample.
func PipelineFrom(ctx context.Context, m *Model, source GroupSource, opts *PipelineOptions) (*PipelineResult, error) {
	var p problems
	if opts != nil {
		p.check(opts.Gather == nil, "Gather is set, and the source has run the rollouts")
		p.check(opts.Epochs == 0, "Epochs is set, and a source has none")
		p.check(!opts.InOrder, "InOrder is set, and a source has its own order")
		p.check(!opts.RepeatStale, "RepeatStale is set, and groups of a source cannot be repeated")
		p.check(opts.Name == "", "Name is set, and a source has no position to store")
	}
	p.check(source != nil, "source is nil")
	o, err := opts.complete(p, m)
	if err != nil {
		return nil, err
	}
	return newPipeline(m, o, &sourceProducer{source: source, model: m}).run(ctx)
}

// complete fills in defaults. Its error is all that is wrong with the options or with m, and what was found before.
func (o *PipelineOptions) complete(p problems, m *Model) (PipelineOptions, error) {
	d := deref(o)
	p.check(d.EvalEvery == 0 || d.Evaluate != nil, "EvalEvery is %d, and Evaluate is nil", d.EvalEvery)
	p.check(d.MaxRefill == 0 || !d.KeepUntrainable, "MaxRefill is %d, and KeepUntrainable is set: nothing is refilled",
		d.MaxRefill)
	gather := d.Gather.withDefaults()
	d.Gather = &gather
	d.Groups = cmp.Or(d.Groups, 4)
	d.MaxGroups = cmp.Or(d.MaxGroups, d.Groups)
	d.MaxStaleness = valueOr(d.MaxStaleness, 2)
	d.MaxRefill = cmp.Or(d.MaxRefill, 10*d.Groups)
	d.EvalEvery = cmp.Or(d.EvalEvery, 10)
	d.Name = cmp.Or(d.Name, "default")
	if d.Epochs == 0 {
		d.Epochs = 1
		if d.Steps > 0 {
			d.Epochs = -1
		}
	}
	p.check(m != nil, "model is nil")
	p.check(d.Steps >= 0, "Steps is %d, want >= 0", d.Steps)
	p.check(d.Groups > 0, "Groups is %d, want > 0", d.Groups)
	p.check(d.MaxGroups >= d.Groups, "MaxGroups is %d, want at least Groups, %d", d.MaxGroups, d.Groups)
	p.check(*d.MaxStaleness >= 0, "MaxStaleness is %d, want >= 0", *d.MaxStaleness)
	p.check(d.MaxRefill > 0, "MaxRefill is %d, want > 0", d.MaxRefill)
	p.check(d.EvalEvery > 0, "EvalEvery is %d, want > 0", d.EvalEvery)
	d.Gather.check(&p)
	if m != nil && d.Evaluate != nil {
		_, logs := m.backend.(logger)
		p.check(m.backend == nil || logs, "Evaluate is set, and %T does not log", m.backend)
	}
	if err := p.err("pipeline", configHint); err != nil {
		return d, err
	}
	return d, m.readyToTrain("pipeline", d.Train)
}

type window struct {
	start     time.Time
	rewards   mean
	tokens    int
	cut       int
	dropped   map[credit.Reason]int
	discarded []*TrajectoryGroup
	rollouts  int
	failures  failures
	closed    *closedWindow // the one before
}

// closedWindow is what is logged of a window.
type closedWindow struct {
	metrics   map[string]float64
	discarded []*TrajectoryGroup
}

func newWindow() window { return window{start: time.Now(), dropped: map[credit.Reason]int{}} }

// add counts a job that has ended.
func (w *window) add(j *groupJob) {
	for _, g := range j.groups {
		w.cut += int(g.Metrics["rollouts_cut"])
		for _, t := range present(g.Trajectories) {
			w.rewards.add(t.Reward)
			w.tokens += sampledTokens(t)
		}
	}
	w.rollouts += j.rollouts
	for _, r := range j.failures {
		w.failures.add(r)
	}
}

// close begins another window, when the training of a step begins.
func (w *window) close(step int, committed time.Time, p *pipeline) {
	now := time.Now()
	metrics := map[string]float64{
		"pipeline/rollouts_failed": float64(w.failures.n),
		"pipeline/groups_waiting":  float64(numGroups(p.ready)),
		"time/trainer_idle_s":      now.Sub(committed).Seconds(),
	}
	if w.rewards.n > 0 {
		metrics["pipeline/reward"] = w.rewards.value()
	}
	seconds := now.Sub(w.start).Seconds()
	if seconds > 0 {
		metrics["pipeline/rollout_tok_per_s"] = float64(w.tokens) / seconds
	}
	if busy, ok := p.producer.busy(); ok && seconds > 0 {
		metrics["pipeline/rollouts_running"] = busy.Seconds() / seconds
	}
	if p.opts.Gather.Extra > 0 {
		metrics["pipeline/rollouts_cut"] = float64(w.cut)
	}
	for reason, n := range w.dropped {
		metrics["pipeline/dropped_"+string(reason)] = float64(n)
	}
	var ages mean
	oldest := 0
	for _, j := range p.batch {
		ages.add(float64(j.age(step)))
		oldest = max(oldest, j.age(step))
	}
	metrics["pipeline/staleness_mean"], metrics["pipeline/staleness_max"] = ages.value(), float64(oldest)
	closed := &closedWindow{metrics, w.discarded}
	*w = newWindow()
	w.closed = closed
}
