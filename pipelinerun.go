package art

import (
	"context"
	"errors"
	"fmt"
	"github.com/goart-dev/art/grpo/credit"
	"slices"
	"time"
)

// errStale ends rollouts that no step can be trained on.
var errStale = errors.New("the rollout began too many steps ago")

// supply is where a pipeline takes groups from.
type supply interface {
	// begin begins a draw, which it sends to ended when ctx or the draw ends. It returns nil when there is none to begin
	// now.
	begin(ctx context.Context, ended chan<- *draw) *draw
	// changed has an element when another draw can begin, though none has ended.
	changed() <-chan struct{}
	// exhausted reports that none will begin any more, unless one that runs is repeated.
	exhausted() bool
	// settle is told that a draw was trained on or dropped, or is to be repeated.
	settle(d *draw, repeat bool)
	// save stores that the step after the current one is trained on these draws, before it is.
	save(ctx context.Context, step int, batch []*draw) error
	// busy is the time for which rollouts ran since the last call, all together; ok is false when it is not known.
	busy() (sum time.Duration, ok bool)
}

// pipeline is the state of a call of [Pipeline]. All of it belongs to the goroutine of run. Others run draws, trainings
// and evaluations, and send how they ended.
type pipeline struct {
	model  *Model
	opts   PipelineOptions
	supply supply
	result PipelineResult

	running   map[*draw]bool
	ready     []*draw // that have ended, in that order
	batch     []*draw // in training; nil when none is
	window    window  // since the last training began
	refilled  int     // groups dropped for equal rewards since then
	committed time.Time

	evaluating bool
	evaluated  int // newest step that is or was evaluated; -1 is none

	ended   chan *draw
	trained chan outcome[*TrainResult]
	scored  chan error

	rollouts     context.Context // of all draws
	stopRollouts context.CancelCauseFunc
}

func newPipeline(m *Model, o PipelineOptions, s supply) *pipeline {
	return &pipeline{
		model: m, opts: o, supply: s, result: PipelineResult{Step: m.Step(), Dropped: map[credit.Reason]int{}},
		running: map[*draw]bool{}, window: newWindow(), committed: time.Now(), evaluated: -1,
		ended: make(chan *draw), trained: make(chan outcome[*TrainResult], 1), scored: make(chan error, 1),
	}
}

// run runs the pipeline until it is done, and waits for all of its goroutines.
func (p *pipeline) run(ctx context.Context) (*PipelineResult, error) {
	p.rollouts, p.stopRollouts = context.WithCancelCause(ctx)
	evaluations, stopEvaluation := context.WithCancel(ctx)
	defer stopEvaluation()
	err := p.skipLogged(ctx)
	for done := false; err == nil && !done; {
		if done, err = p.advance(ctx, evaluations); err == nil && !done {
			err = p.wait(ctx)
		}
	}
	p.stopRollouts(err)
	if err != nil {
		stopEvaluation()
	}
	for len(p.running) > 0 || p.batch != nil || p.evaluating {
		err = firstError(err, p.receive(ctx))
	}
	p.result.Step = p.model.Step()
	for _, d := range p.ready {
		p.result.Unused = append(p.result.Unused, d.groups...)
	}
	return &p.result, err
}

// advance begins what can begin now, and reports whether all is done.
func (p *pipeline) advance(ctx, evaluations context.Context) (done bool, err error) {
	if p.reached() {
		p.stopRollouts(nil)
	}
	last := p.batch == nil && (p.reached() || p.drained())
	due := p.due(last)
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
	for !p.reached() && p.outstanding() < (*p.opts.MaxStaleness+1)*p.opts.Groups {
		d := p.supply.begin(p.rollouts, p.ended)
		if d == nil {
			break
		}
		p.running[d] = true
	}
	return false, nil
}

// reached reports whether the model is at the last step.
func (p *pipeline) reached() bool { return p.opts.Steps > 0 && p.model.Step() >= p.opts.Steps }

// drained reports whether there are no groups left to train on.
func (p *pipeline) drained() bool {
	return p.supply.exhausted() && len(p.running) == 0 && len(p.ready) == 0
}

// outstanding is the number of groups that are running, waiting or in training.
func (p *pipeline) outstanding() int { return len(p.running) + numGroups(p.ready) + numGroups(p.batch) }

// wait waits for something to end.
func (p *pipeline) wait(ctx context.Context) error {
	if len(p.running) == 0 && p.batch == nil && !p.evaluating {
		return contextError(ctx) // what was dropped has made room for more
	}
	return p.receive(ctx)
}

// receive takes what ends next. When ctx has ended it returns the error of that.
func (p *pipeline) receive(ctx context.Context) error {
	var err error
	select {
	case d := <-p.ended:
		err = p.take(d)
	case o := <-p.trained:
		err = p.commit(ctx, o)
	case err = <-p.scored:
		p.evaluating = false
	case <-p.supply.changed():
	}
	return firstError(contextError(ctx), err)
}

// contextError is the error of a context that has ended.
func contextError(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return &Error{"pipeline", endOf(ctx), "the context ended; the run continues from its newest step"}
}

// take takes a draw that has ended.
func (p *pipeline) take(d *draw) error {
	delete(p.running, d)
	if errors.Is(d.err, errStale) {
		p.drop(d, nil, credit.ReasonStale)
		p.supply.settle(d, p.opts.Stale == StaleRepeat)
		return nil
	}
	if d.err != nil && p.rollouts.Err() != nil {
		return nil // cancelled
	}
	if d.err != nil {
		return d.err
	}
	p.window.add(d)
	if err := p.window.check(&p.opts); err != nil {
		return err
	}
	if p.opts.Equal == EqualRefill {
		d.groups = slices.DeleteFunc(d.groups, func(g *TrajectoryGroup) bool {
			reason := p.untrainable(g)
			if reason != "" {
				p.drop(d, g, reason)
				p.refilled++
			}
			return reason != ""
		})
	}
	if len(d.groups) == 0 {
		p.supply.settle(d, false)
		return nil
	}
	p.ready = append(p.ready, d)
	return nil
}

// drop counts a group that is not trained on, and tells of it. A nil group was cancelled.
func (p *pipeline) drop(d *draw, g *TrajectoryGroup, reason credit.Reason) {
	p.result.Dropped[reason]++
	p.window.dropped[reason]++
	if g != nil && reason != credit.ReasonStale {
		p.window.discarded = append(p.window.discarded, g)
	}
	tell(p.model.events().Drop, DropEvent{p.model, p.model.Step(), g, reason})
}

// train begins a training, if there are enough groups.
func (p *pipeline) train(ctx context.Context) error {
	if p.batch != nil {
		return nil
	}
	p.dropStale()
	n := numGroups(p.ready)
	spent := p.refilled >= p.opts.MaxRefill
	if spent && n == 0 {
		return p.collapsed()
	}
	rest := p.supply.exhausted() && len(p.running) == 0
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
	return p.start(ctx)
}

// start trains on the batch, in another goroutine.
func (p *pipeline) start(ctx context.Context) error {
	step := p.model.Step()
	p.window.close(step, p.committed, p)
	p.refilled = 0
	var groups []*TrajectoryGroup
	for _, d := range p.batch {
		groups = append(groups, d.groups...)
	}
	cfg := TrainConfig{}
	if p.opts.Train != nil {
		cfg = *p.opts.Train
	}
	if p.opts.Schedule != nil {
		p.opts.Schedule(step, &cfg)
	}
	if err := p.supply.save(ctx, step, p.batch); err != nil {
		p.batch = nil
		return err
	}
	go protect(ctx, func() (*TrainResult, error) { return p.model.Train(ctx, groups, &cfg) }, p.trained)
	return nil
}

// commit takes a training that has ended.
func (p *pipeline) commit(ctx context.Context, o outcome[*TrainResult]) error {
	batch := p.batch
	p.batch = nil
	if o.err != nil {
		return o.err
	}
	for _, d := range batch {
		p.supply.settle(d, false)
	}
	p.committed = time.Now()
	p.result.Steps++
	p.result.Groups += numGroups(batch)
	for d := range p.running {
		if d.age(p.model.Step()) > *p.opts.MaxStaleness {
			d.cancel(errStale)
		}
	}
	return p.logStep(ctx, o.value.Step-1)
}

// logStep stores the metrics of the pipeline with those of a training, and the groups that were dropped before it.
func (p *pipeline) logStep(ctx context.Context, step int) error {
	w := p.window.closed
	if _, ok := p.model.backend.(logger); !ok {
		return nil
	}
	if err := p.model.logAt(ctx, "train", step, nil, w.metrics); err != nil {
		return err
	}
	if len(w.discarded) == 0 {
		return nil
	}
	return p.model.logAt(ctx, "discarded", step, w.discarded, Metrics(w.discarded...))
}

// dropStale drops what is too old to be trained on.
func (p *pipeline) dropStale() {
	step := p.model.Step()
	p.ready = slices.DeleteFunc(p.ready, func(d *draw) bool {
		old := d.age(step) > *p.opts.MaxStaleness
		if old {
			for _, g := range d.groups {
				p.drop(d, g, credit.ReasonStale)
			}
			p.supply.settle(d, p.opts.Stale == StaleRepeat)
		}
		return old
	})
}

// collapsed is the error of a step for which there is nothing to learn from.
func (p *pipeline) collapsed() error {
	err := fmt.Errorf("%w: groups in a row without advantages: %d, for these reasons: %v", ErrCollapsed, p.refilled,
		p.window.dropped)
	return &Error{"pipeline", err,
		"make scenarios of more even difficulty, or raise the temperature, Gather.GroupSize or MaxRefill"}
}

// untrainable says why nothing can be learned of a group, if so: as a training does, if the backend tells, and
// otherwise by the number of its rewards and their spread.
func (p *pipeline) untrainable(g *TrajectoryGroup) credit.Reason {
	cfg := p.opts.Train.WithDefaults()
	if b, ok := p.model.backend.(groupChecker); ok {
		return b.CheckGroup(g, cfg)
	}
	var rewards []float64
	for _, t := range g.Trajectories {
		if t == nil || !finite(t.Reward) {
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

// sampledTokens counts what the model has sampled of a trajectory.
func sampledTokens(t *Trajectory) int {
	n := 0
	for _, s := range t.Samples() {
		n += len(s.IDs)
	}
	return n
}

// numGroups counts the groups of draws.
func numGroups(draws []*draw) int {
	n := 0
	for _, d := range draws {
		n += len(d.groups)
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

// due reports whether the current step has to be evaluated before the next training begins.
func (p *pipeline) due(last bool) bool {
	step := p.model.Step()
	return p.opts.Evaluate != nil && p.evaluated != step && (last || step%p.opts.EvalEvery == 0)
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
