package art

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art/grpo/credit"
)

// Train makes the next step of the model out of groups. cfg may be nil: defaults. The replies to requests that start
// after it returns are those of the new step.
//
// It returns [ErrNotRegistered], [ErrFrozen], [ErrNoGroups] when groups is empty, [ErrInvalid] listing every problem of
// cfg, and [ErrCollapsed] when [ModelOptions].CollapseAfter says so, without calling the backend. Groups that cannot be
// trained on are no error: they are listed in [TrainResult].Skipped, and the step is made even when all of them are,
// with a warning: [ModelOptions].Logger.
//
// Nor is an update whose loss or gradient is NaN or infinite: backend/local skips it as a whole and warns, the metric
// data/updates_skipped counts it, and the trajectories that it is skipped because of are listed with
// [credit.ReasonNotFinite]. When all updates are skipped, the step has the weights of the one before.
func (m *Model) Train(ctx context.Context, groups []*TrajectoryGroup, cfg *TrainConfig) (*TrainResult, error) {
	if err := m.readyToTrain("train", cfg); err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		return nil, &Error{"train", ErrNoGroups, "gather at least one group of two trajectories"}
	}
	if err := m.flat.check(m.opts.CollapseAfter, groups); err != nil {
		return nil, err
	}
	given := deref(cfg).LearningRate
	cfg = cfg.WithDefaults()
	e := TrainStart{Groups: len(groups), Config: cfg}
	l, err := m.startLearning(groups, given, &cfg.LearningRate, &cfg.Progress, e)
	if err != nil {
		return nil, err
	}
	return l.end(m.backend.Train(ctx, m, groups, cfg))
}

// readyToTrain returns the error of a model that cannot be trained, or of a configuration.
func (m *Model) readyToTrain(op string, cfg *TrainConfig) error {
	b, err := m.registered(op)
	if err != nil {
		return err
	}
	if err := m.Trainable(op); err != nil {
		return err
	}
	var own []credit.Loss
	if p, ok := b.(lossProvider); ok {
		own = p.Losses()
	}
	if err := cfg.Validate(own...); err != nil {
		return err
	}
	if c, ok := b.(trainChecker); ok {
		return c.CheckTrain(cfg.WithDefaults())
	}
	return nil
}

// TrainSFT makes the next step of the model by supervised training on the assistant messages of the trajectories. cfg
// may be nil: defaults.
//
// It returns [ErrNotRegistered], [ErrFrozen], [ErrUnsupported] when the backend is no driver.SFTTrainer, and
// [ErrInvalid] for no trajectories or a bad cfg. Updates that are not finite are skipped, as by [Model.Train].
func (m *Model) TrainSFT(ctx context.Context, trajectories []*Trajectory, cfg *SFTConfig) (*TrainResult, error) {
	trainer, err := trainable[sftTrainer](m, "train sft", "driver.SFTTrainer")
	if err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(trajectories) == 0 {
		return nil, problems{"no trajectories"}.err("train sft", "give at least one with an assistant message")
	}
	given, groups := deref(cfg).LearningRate, []*TrajectoryGroup{{Trajectories: trajectories}}
	cfg = cfg.WithDefaults()
	l, err := m.startLearning(groups, given, &cfg.LearningRate, &cfg.Progress, TrainStart{Groups: 1, SFT: cfg})
	if err != nil {
		return nil, err
	}
	return l.end(trainer.TrainSFT(ctx, m, trajectories, cfg))
}

// Trainable returns why m cannot be trained, nil if it can: [ErrNotRegistered], or [ErrFrozen] for a frozen model and a
// snapshot. op is what the error says was being done. For packages that train in other ways, such as backend/loop.
func (m *Model) Trainable(op string) error {
	if _, err := m.registered(op); err != nil {
		return err
	}
	if m.snapshot {
		return &Error{op, fmt.Errorf("%w: %q is a snapshot", ErrFrozen, m.name), "train the model that it was made of"}
	}
	if !m.opts.Frozen {
		return nil
	}
	return &Error{op, fmt.Errorf("%w: %q", ErrFrozen, m.name), "train a model made without ModelOptions.Frozen"}
}

// learning is one call of Train, TrainSFT or TrainDPO, as its events describe it.
type learning struct {
	model  *Model
	start  time.Time
	step   int // to be made
	groups []*TrajectoryGroup
}

// startLearning completes the configuration of a training, and the event e that says that it begins. rate is that of
// the configuration with its defaults; the backend may choose another one where none was given.
func (m *Model) startLearning(
	groups []*TrajectoryGroup, given float64, rate *float64, progress *func(TrainProgress), e TrainStart,
) (*learning, error) {
	if b, ok := m.backend.(rateChooser); ok && given == 0 {
		chosen, err := b.LearningRate(m)
		if err != nil {
			return nil, err
		}
		*rate = cmp.Or(chosen, *rate)
	}
	l := &learning{m, time.Now(), m.Step() + 1, groups}
	if listener := m.events().OptimizerStep; listener != nil {
		*progress = both(*progress, func(p TrainProgress) { listener(OptimizerStep{m, l.step, p}) })
	}
	e.Model, e.Time, e.Step = m, l.start, l.step
	for _, g := range present(groups) {
		e.Trajectories += len(g.Trajectories)
	}
	tell(m.events().TrainStart, e)
	return l, nil
}

// end records the step of a training that succeeded, and reports how it ended.
func (l *learning) end(result *TrainResult, err error) (*TrainResult, error) {
	m, events := l.model, l.model.events()
	if err != nil {
		tell(events.TrainError, TrainError{m, l.step, err})
		return nil, err
	}
	m.reached(result.Step)
	m.warnIdle(result)
	for _, skip := range result.Skipped {
		tell(events.Skip, SkipEvent{m, result.Step - 1, skip})
	}
	tell(events.Commit, Commit{m, result, l.groups, time.Since(l.start)})
	return result, nil
}

// TrainProgress is the progress of a training call.
type TrainProgress struct {
	Done, Total int // optimizer steps
	// Metrics are those of [TrainResult] for the optimizer steps made so far; the backend may leave some out.
	Metrics map[string]float64
}

// TrainResult is the result of a training call.
type TrainResult struct {
	// Step is the new policy step: k+1 of an update from k, whose metrics belong to row k.
	Step int
	// Metrics of the step, each described in the documentation of the backend.
	Metrics map[string]float64
	// Skipped lists what was not trained on, and why.
	Skipped []Skip
	// Advantages are those of the trajectories of each group that was given, before they are normalized over the batch;
	// NaN where nothing was trained on, which is why they are no part of the result's JSON. nil when the backend does not
	// tell, and for supervised training.
	Advantages [][]float64 `json:"-"`
	// Ratios are the importance ratios of the trained tokens at the beginning of the training, in no promised order: the
	// probability under the policy that is trained over that under the policy that sampled the token. nil when the backend
	// does not tell.
	Ratios []float32 `json:"-"`
}

// Skip is a group or a trajectory that was left out of training. Supervised training may leave out single histories of
// a trajectory, with a Skip for each.
type Skip struct {
	Group      int // index in the call, of a pair for TrainDPO; 0 of supervised training, whose trajectories are one group
	Trajectory int // index in the group; -1 for the whole group
	Reason     credit.Reason
	Detail     string // human-readable: "513 tokens, the context has 512"; may be empty
}

// collapse counts consecutive trainings without differing rewards in any group.
type collapse struct {
	mu   sync.Mutex
	flat int
}

// check returns an [ErrCollapsed] when groups are the limit-th consecutive batch without differing rewards in any
// group. A limit of 0 is none.
func (c *collapse) check(limit int, groups []*TrajectoryGroup) error {
	varied, rewarded := false, false // whether rewards differ within any group, and whether any is not 0
	for _, g := range present(groups) {
		list := present(g.Trajectories)
		for _, t := range list {
			varied, rewarded = varied || t.Reward != list[0].Reward, rewarded || t.Reward != 0
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if varied {
		c.flat = 0
		return nil
	}
	c.flat++
	if limit == 0 || c.flat < limit {
		return nil
	}
	what, hint := "all rewards of a group are equal",
		"make scenarios of more even difficulty, raise the temperature or the group size, or let a judge rank ties"
	if !rewarded {
		what, hint = "all rewards are 0", "go back with Model.Restore if rewards were higher before; "+
			"otherwise give partial credit or begin with easier scenarios"
	}
	return &Error{"train", fmt.Errorf("%w: %s; trainings in a row: %d; no step was made", ErrCollapsed, what, c.flat),
		hint}
}

// grace is how long a user's function may take to return after its context has ended. After that it is abandoned.
const grace = time.Second

var (
	errGoexit    = errors.New("called runtime.Goexit, as testing.T.FailNow does: return an error instead")
	errAbandoned = errors.New("did not return after its context had ended, and was abandoned")
)

// outcome is how a function of the user ended.
type outcome[T any] struct {
	value T
	err   error
	late  bool // the context had ended before it returned
}

// guard calls f on its own goroutine, and turns a panic or runtime.Goexit into an error. When ctx ends and f does not
// return within [grace], f is abandoned and what it returns later is dropped.
func guard[T any](ctx context.Context, f func() (T, error)) outcome[T] {
	done := make(chan outcome[T], 1)
	go func() { protect(ctx, f, done) }()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}
	select {
	case o := <-done:
		return o
	case <-time.After(grace):
		return outcome[T]{err: errAbandoned, late: true}
	}
}

// protect sends how f ended: with a value, an error, a panic or runtime.Goexit.
func protect[T any](ctx context.Context, f func() (T, error), done chan<- outcome[T]) {
	o := outcome[T]{err: errGoexit}
	defer func() {
		if r := recover(); r != nil {
			o.err = newPanicError(r)
		}
		o.late = ctx.Err() != nil
		done <- o
	}()
	o.value, o.err = f()
}

const (
	maxFrames    = 128 // of a panic's stack that are read
	quotedFrames = 4   // that its error quotes
)

type panicError struct {
	value  any
	frames []runtime.Frame // of the code that panicked, the innermost first
	cut    bool            // there are more
}

// newPanicError describes a panic with the given value. It must be called by the deferred function that recovered it.
func newPanicError(value any) *panicError {
	pcs := make([]uintptr, maxFrames)
	pcs = pcs[:runtime.Callers(2, pcs)]
	return &panicError{value, panicFrames(pcs), len(pcs) == maxFrames}
}

// panicFrames returns the frames of the code that panicked: without those that recovered the panic, those of the
// runtime, and those of this package that called the code.
func panicFrames(pcs []uintptr) []runtime.Frame {
	var frames []runtime.Frame
	panicked := false
	for all := runtime.CallersFrames(pcs); ; {
		frame, more := all.Next()
		// Maps are in internal/runtime/maps.
		own := strings.HasPrefix(frame.Function, "runtime.") || strings.HasPrefix(frame.Function, "internal/runtime/")
		if panicked && !own {
			frames = append(frames, frame)
		}
		panicked = panicked || frame.Function == "runtime.gopanic"
		if !more {
			break
		}
	}
	own := reflect.TypeFor[panicError]().PkgPath() + "."
	for len(frames) > 1 && strings.HasPrefix(frames[len(frames)-1].Function, own) {
		frames = frames[:len(frames)-1]
	}
	return frames
}

// Error says what the panic was and where:
//
//	panic: assignment to entry in nil map, at main.play (tictactoe/main.go:57),
//	called by main.main.func1 (tictactoe/main.go:40)
func (e *panicError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "panic: %v", e.value)
	between := ", at "
	for _, f := range e.frames[:min(quotedFrames, len(e.frames))] {
		dir, file := path.Split(f.File)
		fmt.Fprintf(&b, "%s%s (%s:%d)", between, path.Base(f.Function), path.Join(path.Base(dir), file), f.Line)
		between = ", called by "
	}
	if len(e.frames) > quotedFrames {
		b.WriteString(between + "...")
	}
	return b.String()
}

// stack returns the frames in the form of [debug.Stack], without addresses.
func (e *panicError) stack() string {
	var b strings.Builder
	for _, f := range e.frames {
		fmt.Fprintf(&b, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
	}
	if e.cut {
		b.WriteString("...\n")
	}
	return b.String()
}

// Unwrap returns the panic's value when that is an error.
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}
