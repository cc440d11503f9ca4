package art

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goart-dev/art/grpo/credit"
)

// errStale ends rollouts that no step can be trained on.
var errStale = errors.New("the rollout began too many steps ago")

// pipeline is the state of a call of [Pipeline]. All of it belongs to the goroutine of run. Others run jobs, trainings
// and evaluations, and send how they ended.
type pipeline struct {
	model    *Model
	opts     PipelineOptions
	producer groupProducer
	result   PipelineResult

	running   map[*groupJob]bool
	ready     []*groupJob // that have ended, in that order
	batch     []*groupJob // in training; nil when none is
	window    window      // since the last training began
	refilled  int         // groups dropped as untrainable since then
	committed time.Time

	evaluating bool
	evaluated  int // newest step that is or was evaluated; -1 is none

	ended   chan *groupJob
	trained chan outcome[*TrainResult]
	scored  chan error

	rollouts     context.Context // of all jobs
	stopRollouts context.CancelCauseFunc
}

func newPipeline(m *Model, o PipelineOptions, g groupProducer) *pipeline {
	return &pipeline{
		model: m, opts: o, producer: g, result: PipelineResult{Step: m.Step(), Dropped: map[credit.Reason]int{}},
		running: map[*groupJob]bool{}, window: newWindow(), committed: time.Now(), evaluated: -1,
		ended: make(chan *groupJob), trained: make(chan outcome[*TrainResult], 1), scored: make(chan error, 1),
	}
}

// run runs the pipeline until it is done, and waits for all of its goroutines.
func (p *pipeline) run(ctx context.Context) (*PipelineResult, error) {
	p.rollouts, p.stopRollouts = context.WithCancelCause(ctx)
	evaluations, stopEvaluation := context.WithCancel(ctx)
	defer stopEvaluation()
	err := p.skipLogged(ctx)
	for done := false; err == nil && !done; {
		if done, err = p.advance(ctx, evaluations); err != nil || done {
			break
		}
		if len(p.running) == 0 && p.batch == nil && !p.evaluating {
			err = contextError(ctx) // what was dropped has made room for more
		} else {
			err = p.receive(ctx)
		}
	}
	p.stopRollouts(err)
	if err != nil {
		stopEvaluation()
	}
	for len(p.running) > 0 || p.batch != nil || p.evaluating {
		err = cmp.Or(err, p.receive(ctx))
	}
	p.result.Step = p.model.Step()
	for _, j := range p.ready {
		p.result.Unused = append(p.result.Unused, j.groups...)
	}
	return &p.result, err
}

// advance begins what can begin now, and reports whether all is done.
func (p *pipeline) advance(ctx, evaluations context.Context) (done bool, err error) {
	if p.reached() {
		p.stopRollouts(nil)
	}
	drained := p.producer.exhausted() && len(p.running) == 0 && len(p.ready) == 0
	last := p.batch == nil && (p.reached() || drained)
	step := p.model.Step()
	due := p.opts.Evaluate != nil && p.evaluated != step && (last || step%p.opts.EvalEvery == 0) // before it is trained on
	switch {
	case due && p.batch == nil && !p.evaluating:
		err = p.evaluate(evaluations)
		due = false
	case last && !due && !p.evaluating:
		return true, nil
	}
	if err == nil && !due && !last {
		err = p.train(ctx)
	}
	if err != nil {
		return false, err
	}
	most := (*p.opts.MaxStaleness + 1) * p.opts.Groups // running, waiting or in training
	for !p.reached() && len(p.running)+numGroups(p.ready)+numGroups(p.batch) < most {
		j := p.producer.start(p.rollouts, p.ended)
		if j == nil {
			break
		}
		p.running[j] = true
	}
	return false, nil
}

func (p *pipeline) reached() bool { return p.opts.Steps > 0 && p.model.Step() >= p.opts.Steps }

// receive takes what ends next. When ctx has ended it returns the error of that.
func (p *pipeline) receive(ctx context.Context) error {
	var err error
	select {
	case j := <-p.ended:
		err = p.take(j)
	case o := <-p.trained:
		err = p.commit(ctx, o)
	case err = <-p.scored:
		p.evaluating = false
	case <-p.producer.changed():
	}
	return cmp.Or(contextError(ctx), err)
}

func contextError(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &Error{"pipeline", endOf(ctx), "the context ended; the run continues from its newest step"}
}

func (p *pipeline) take(j *groupJob) error {
	delete(p.running, j)
	if errors.Is(j.err, errStale) {
		p.drop(nil, credit.ReasonStale)
		p.producer.finish(j, p.opts.RepeatStale)
		return nil
	}
	if j.err != nil && p.rollouts.Err() != nil {
		return nil // cancelled
	}
	if j.err != nil {
		return j.err
	}
	p.window.add(j)
	failed := &p.window.failures
	gather := p.opts.Gather
	if allowed := gather.allowedFailures(max(p.window.rollouts, p.opts.Groups*gather.GroupSize)); failed.n > allowed {
		count := fmt.Sprintf("%d before a step, at most %d allowed", failed.n, allowed)
		return failed.tooMany("pipeline", count, "PipelineOptions.Gather.")
	}
	if !p.opts.KeepUntrainable {
		j.groups = slices.DeleteFunc(j.groups, func(g *TrajectoryGroup) bool {
			reason := p.untrainable(g)
			if reason != "" {
				p.drop(g, reason)
				p.refilled++
			}
			return reason != ""
		})
	}
	if len(j.groups) == 0 {
		p.producer.finish(j, false)
		return nil
	}
	p.ready = append(p.ready, j)
	return nil
}

// drop counts a group that is not trained on, and tells of it. A nil group was cancelled.
func (p *pipeline) drop(g *TrajectoryGroup, reason credit.Reason) {
	p.result.Dropped[reason]++
	p.window.dropped[reason]++
	if g != nil && reason != credit.ReasonStale {
		p.window.discarded = append(p.window.discarded, g)
	}
	tell(p.model.events().Drop, DropEvent{p.model, p.model.Step(), g, reason})
}

// train begins a training in another goroutine, if there are enough groups.
func (p *pipeline) train(ctx context.Context) error {
	if p.batch != nil {
		return nil
	}
	p.dropStale()
	n := numGroups(p.ready)
	spent := p.refilled >= p.opts.MaxRefill
	if spent && n == 0 {
		err := fmt.Errorf("%w: groups in a row without advantages: %d, for these reasons: %v", ErrCollapsed, p.refilled,
			p.window.dropped)
		return &Error{"pipeline", err,
			"make scenarios of more even difficulty, or raise the temperature, Gather.GroupSize or MaxRefill"}
	}
	rest := p.producer.exhausted() && len(p.running) == 0
	if n == 0 || n < p.opts.Groups && !spent && !rest {
		return nil
	}
	size := 0
	for len(p.ready) > 0 {
		next := len(p.ready[0].groups)
		if size >= p.opts.Groups && size+next > p.opts.MaxGroups {
			break
		}
		size += next
		p.batch, p.ready = append(p.batch, p.ready[0]), p.ready[1:]
	}
	step := p.model.Step()
	p.window.close(step, p.committed, p)
	p.refilled = 0
	var groups []*TrajectoryGroup
	for _, j := range p.batch {
		groups = append(groups, j.groups...)
	}
	cfg := deref(p.opts.Train)
	if p.opts.Schedule != nil {
		p.opts.Schedule(step, &cfg)
	}
	if err := p.producer.save(ctx, step, p.batch); err != nil {
		p.batch = nil
		return err
	}
	go protect(ctx, func() (*TrainResult, error) { return p.model.Train(ctx, groups, &cfg) }, p.trained)
	return nil
}

// commit takes a training that has ended. It stores the metrics of the pipeline with those of the training, and the
// groups that were dropped before it.
func (p *pipeline) commit(ctx context.Context, o outcome[*TrainResult]) error {
	batch := p.batch
	p.batch = nil
	if o.err != nil {
		return o.err
	}
	for _, j := range batch {
		p.producer.finish(j, false)
	}
	p.committed = time.Now()
	p.result.Steps++
	p.result.Groups += numGroups(batch)
	for j := range p.running {
		if j.age(p.model.Step()) > *p.opts.MaxStaleness {
			j.cancel(errStale)
		}
	}
	if _, ok := p.model.backend.(logger); !ok {
		return nil
	}
	step, w := o.value.Step-1, p.window.closed
	if err := p.model.logAt(ctx, "train", step, nil, w.metrics); err != nil {
		return err
	}
	if len(w.discarded) == 0 {
		return nil
	}
	return p.model.logAt(ctx, "discarded", step, w.discarded, Metrics(w.discarded...))
}

func (p *pipeline) dropStale() {
	step := p.model.Step()
	p.ready = slices.DeleteFunc(p.ready, func(j *groupJob) bool {
		old := j.age(step) > *p.opts.MaxStaleness
		if old {
			for _, g := range j.groups {
				p.drop(g, credit.ReasonStale)
			}
			p.producer.finish(j, p.opts.RepeatStale)
		}
		return old
	})
}

// untrainable says why nothing can be learned of a group, if so: as a training does, if the backend tells, and
// otherwise by the number of its rewards and their spread.
func (p *pipeline) untrainable(g *TrajectoryGroup) credit.Reason {
	cfg := p.opts.Train.WithDefaults()
	if b, ok := p.model.backend.(groupChecker); ok {
		return b.CheckGroup(g, cfg)
	}
	var rewards []float64
	for _, t := range present(g.Trajectories) {
		if !finite(t.Reward) {
			continue
		}
		if o := cfg.Overlong; o.Longest > 0 && sampledTokens(t) > o.Longest-o.Buffer {
			return "" // its reward will be lowered
		}
		rewards = append(rewards, t.Reward)
	}
	switch {
	case len(rewards) == 0:
		return credit.ReasonEmptyGroup
	case len(rewards) == 1:
		return credit.ReasonSingleton
	}
	low, high := slices.Min(rewards), slices.Max(rewards)
	if high-low <= cfg.VarianceTolerance*max(high, -low) {
		return credit.ReasonNoVariance
	}
	return ""
}

func sampledTokens(t *Trajectory) int {
	n := 0
	for _, s := range t.Samples() {
		n += len(s.IDs)
	}
	return n
}

func numGroups(jobs []*groupJob) int {
	n := 0
	for _, j := range jobs {
		n += len(j.groups)
	}
	return n
}

// skipLogged notes the evaluation of the current step, if an earlier process has logged it.
func (p *pipeline) skipLogged(ctx context.Context) error {
	keeper, ok := p.model.backend.(checkpointKeeper)
	if !ok || p.opts.Evaluate == nil {
		return nil
	}
	rows, err := keeper.History(ctx, p.model)
	if err != nil {
		return err
	}
	if _, logged := Logged(rows, "val/reward", p.model.Step()); logged {
		p.evaluated = p.model.Step()
	}
	return nil
}

// evaluate measures the current step, in another goroutine.
func (p *pipeline) evaluate(ctx context.Context) error {
	step := p.model.Step()
	p.evaluated = step
	if _, ok := p.model.backend.(pinner); ok {
		pin, err := p.model.Pin()
		if err != nil {
			return err
		}
		ctx = pin.Context(ctx)
	}
	p.evaluating = true
	go func() {
		start := time.Now()
		o := guard(ctx, func() (*TrajectoryGroup, error) { return p.opts.Evaluate(ctx) })
		if o.err != nil || o.value == nil {
			p.scored <- o.err
			return
		}
		metrics := Metrics(o.value)
		metrics["time/eval_s"] = time.Since(start).Seconds()
		p.scored <- p.model.logAt(ctx, "val", step, []*TrajectoryGroup{o.value}, metrics)
	}()
	return nil
}
