package track_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/secret"
	"github.com/goart-dev/art/internal/track"
)

// fakeRun remembers what it is told, and does not accept the same metric twice.
type fakeRun struct {
	before func(ctx context.Context) error // of each call of Rows; may be nil

	mu      sync.Mutex
	written track.Values
	config  []map[string]any
	values  map[string]float64 // "key@step"
	twice   []string
	groups  []track.Groups
	closed  bool
	failed  bool
}

func (f *fakeRun) Written(context.Context) (track.Values, error) { return f.written, nil }

func (f *fakeRun) Config(_ context.Context, config map[string]any) error {
	f.config = append(f.config, config)
	return nil
}

func (f *fakeRun) Rows(ctx context.Context, rows []track.Row) error {
	if f.before != nil {
		if err := f.before(ctx); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.values == nil {
		f.values = map[string]float64{}
	}
	for _, row := range rows {
		for key, x := range row.Metrics {
			name := fmt.Sprintf("%s@%d", key, row.Step)
			if _, ok := f.values[name]; ok {
				f.twice = append(f.twice, name)
			}
			f.values[name] = x
		}
	}
	return nil
}

func (f *fakeRun) Groups(_ context.Context, g track.Groups) error {
	f.groups = append(f.groups, g)
	return nil
}

func (f *fakeRun) Close(_ context.Context, failed bool) error {
	f.closed, f.failed = true, failed
	return nil
}

// rewindable can take back what it has.
type rewindable struct {
	*fakeRun
	step int
	keep track.Values
}

func (r *rewindable) Rewind(_ context.Context, step int, keep track.Values) error {
	r.step, r.keep = step, keep
	return nil
}

func newTracker(t *testing.T, run track.Run, opts track.Options) *track.Tracker {
	opts.Name, opts.Open = "fake", func(context.Context, *art.Model) (track.Run, error) { return run, nil }
	tracker := track.New(opts)
	t.Cleanup(func() { _ = tracker.Close() })
	return tracker
}

// train registers a model and makes steps, each with a reward of its own.
func train(t *testing.T, b art.Backend, events *art.Events, steps int) *art.Model {
	t.Helper()
	m := art.NewModel("player", &art.ModelOptions{Events: events})
	require.NoError(t, m.Register(t.Context(), b))
	for i := range steps {
		g := &art.TrajectoryGroup{Trajectories: []*art.Trajectory{{Reward: float64(i)}, {Reward: float64(i) + 1}}}
		_, err := m.Train(t.Context(), []*art.TrajectoryGroup{g}, nil)
		require.NoError(t, err)
	}
	return m
}

// Each metric of each step is stored once, and Log adds only what Train has not told.
func TestTracker_Once(t *testing.T) {
	run := &fakeRun{}
	tracker := newTracker(t, run, track.Options{Config: map[string]any{"api_key": "x", "note": "y"}})
	m := train(t, &arttest.Backend{}, tracker.Events(), 3)
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 7}}}}
	require.NoError(t, m.Log(t.Context(), "val", groups, map[string]float64{"costs/all": 2}))
	require.NoError(t, tracker.Close())
	require.Empty(t, run.twice)
	require.Equal(t, 1.5, run.values["train/reward@1"])
	require.Contains(t, run.values, "data/groups_trainable@2")
	require.Equal(t, 7.0, run.values["val/reward@3"])
	require.Equal(t, 2.0, run.values["val/costs/all@3"], "another split does not replace the key of train")
	require.True(t, run.closed)
	require.False(t, run.failed)
	require.Len(t, run.groups, 4)
	last := run.config[len(run.config)-1]
	require.Equal(t, secret.Redacted, last["api_key"])
	require.Equal(t, "y", last["note"])
	require.Equal(t, "cispo", last["train"].(map[string]any)["loss"])
}

// A run that hangs does not slow training. Close gives up after its timeout, and says what was not stored.
func TestTracker_Hangs(t *testing.T) {
	run := &fakeRun{before: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
	tracker := newTracker(t, run, track.Options{Queue: 4, Timeout: 50 * time.Millisecond})
	start := time.Now()
	train(t, &arttest.Backend{}, tracker.Events(), 50)
	require.Less(t, time.Since(start), 5*time.Second)
	require.Positive(t, tracker.Dropped())
	err := tracker.Close()
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, `fake: run "player"`)
	require.ErrorContains(t, err, "were not stored")
}

// What was dropped while a run was slow is stored from the history of the backend, without duplicates.
func TestTracker_NoGaps(t *testing.T) {
	release := make(chan struct{})
	run := &fakeRun{before: func(context.Context) error { <-release; return nil }}
	tracker := newTracker(t, run, track.Options{Queue: 2})
	train(t, &arttest.Backend{}, tracker.Events(), 100)
	close(release)
	require.NoError(t, tracker.Close())
	require.Positive(t, tracker.Dropped())
	require.Empty(t, run.twice)
	for step := range 100 {
		require.Equal(t, float64(step)+0.5, run.values[fmt.Sprintf("train/reward@%d", step)])
	}
}

// After errors everything is stored in the end.
func TestTracker_Errors(t *testing.T) {
	fail := true
	run := &fakeRun{}
	run.before = func(context.Context) error {
		if fail {
			fail = false
			return errors.New("status 500")
		}
		return nil
	}
	tracker := newTracker(t, run, track.Options{})
	train(t, &arttest.Backend{}, tracker.Events(), 5)
	require.NoError(t, tracker.Close())
	require.False(t, fail)
	require.Empty(t, run.twice)
	require.Len(t, run.groups, 5)
	require.Equal(t, 4.5, run.values["train/reward@4"])
}

// A failed training is told at the end.
func TestTracker_Failed(t *testing.T) {
	run := &fakeRun{}
	tracker := newTracker(t, run, track.Options{})
	b := &arttest.Backend{Learn: func(context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig) error {
		return errors.New("no")
	}}
	m := train(t, b, tracker.Events(), 0)
	_, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil)
	require.Error(t, err)
	require.NoError(t, tracker.Close())
	require.True(t, run.failed)
}

// Events after Close are counted and do not panic; a second Close returns the same.
func TestTracker_Closed(t *testing.T) {
	tracker := newTracker(t, &fakeRun{}, track.Options{})
	require.NoError(t, tracker.Close())
	train(t, &arttest.Backend{}, tracker.Events(), 1)
	require.Equal(t, 3, tracker.Dropped())
	require.NoError(t, tracker.Close())
}

// resumed is a backend of a run that another process has begun.
type resumed struct {
	*arttest.Backend
	step int
	rows []art.HistoryRow
}

func (r resumed) Register(ctx context.Context, m *art.Model) (int, error) {
	_, err := r.Backend.Register(ctx, m)
	return r.step, err
}

func (r resumed) History(context.Context, *art.Model) ([]art.HistoryRow, error) { return r.rows, nil }

// killed is a run at step 2 whose tracker was stopped at another moment: it lacks a part of row 0 and all of row 1, and
// has a row 2 that was never committed, beside a measurement that was.
func killed() (resumed, track.Values) {
	reward := func(key string, x float64) map[string]float64 { return map[string]float64{key: x} }
	b := resumed{&arttest.Backend{}, 2, []art.HistoryRow{
		{Split: "train", Step: 0, Metrics: map[string]float64{"train/reward": 1, "loss/policy": 0.1}},
		{Split: "train", Step: 1, Metrics: reward("train/reward", 2)},
		{Split: "val", Step: 2, Metrics: reward("val/reward", 3)},
	}}
	return b, track.Values{0: reward("train/reward", 1), 2: {"val/reward": 3, "train/reward": 9}}
}

// A resumed run stores what is missing, and again what was taken back.
func TestTracker_Resumes(t *testing.T) {
	b, written := killed()
	run := &rewindable{fakeRun: &fakeRun{written: written}}
	tracker := newTracker(t, run, track.Options{})
	m := train(t, b, tracker.Events(), 0)
	require.NoError(t, m.Log(t.Context(), "train", nil, map[string]float64{"reward": 5}))
	require.NoError(t, tracker.Close())
	require.Equal(t, 2, run.step)
	require.Equal(t, map[string]float64{"val/reward": 3}, run.keep[2])
	require.Equal(t, map[string]float64{"loss/policy@0": 0.1, "train/reward@1": 2, "train/reward@2": 5}, run.values)
}

// Where nothing can be taken back, what was stored stays and is not repeated.
func TestTracker_ResumesAppendOnly(t *testing.T) {
	b, written := killed()
	run := &fakeRun{written: written}
	tracker := newTracker(t, run, track.Options{})
	m := train(t, b, tracker.Events(), 0)
	require.NoError(t, m.Log(t.Context(), "train", nil, map[string]float64{"reward": 5, "other": 6}))
	require.NoError(t, tracker.Close())
	require.Equal(t, map[string]float64{"loss/policy@0": 0.1, "train/reward@1": 2, "train/other@2": 6}, run.values)
}

// A tracker is often closed after its backend, and then stores what it has missed all the same: an earlier process was
// killed before it was sent, or events were dropped.
func TestTracker_ClosedAfterBackend(t *testing.T) {
	closed := make(chan struct{})
	run := &fakeRun{before: func(context.Context) error { <-closed; return nil }}
	tracker := newTracker(t, run, track.Options{Queue: 2})
	b := &arttest.Backend{}
	train(t, b, tracker.Events(), 100)
	require.NoError(t, b.Close())
	close(closed)
	require.NoError(t, tracker.Close())
	require.Positive(t, tracker.Dropped())
	require.Empty(t, run.twice)
	for step := range 100 {
		require.Equal(t, float64(step)+0.5, run.values[fmt.Sprintf("train/reward@%d", step)])
	}
}

// forgetful is a backend that cannot read its history.
type forgetful struct {
	*arttest.Backend
	err error
}

func (f *forgetful) History(context.Context, *art.Model) ([]art.HistoryRow, error) { return nil, f.err }

// Where the history cannot be read, what was told is stored, and Close says at once that something may be missing.
func TestTracker_NoHistory(t *testing.T) {
	run := &fakeRun{}
	tracker := newTracker(t, run, track.Options{Timeout: time.Minute})
	train(t, &forgetful{&arttest.Backend{}, &art.Error{Op: "history", Err: art.ErrClosed}}, tracker.Events(), 3)
	start := time.Now()
	err := tracker.Close()
	require.ErrorIs(t, err, art.ErrClosed)
	require.ErrorContains(t, err, "may be missing")
	require.Less(t, time.Since(start), 30*time.Second)
	require.Equal(t, 2.5, run.values["train/reward@2"])
	require.Len(t, run.groups, 3)
	require.True(t, run.closed)
}

// A history that can be read again is read again, and nothing is told twice.
func TestTracker_HistoryAgain(t *testing.T) {
	run := &fakeRun{}
	tracker := newTracker(t, run, track.Options{})
	b, _ := killed()
	fails := &failing{b, 2}
	m := train(t, fails, tracker.Events(), 0)
	require.NoError(t, m.Log(t.Context(), "train", nil, map[string]float64{"reward": 5}))
	require.NoError(t, tracker.Close())
	require.Zero(t, fails.times)
	require.Empty(t, run.twice)
	require.Equal(t, 2.0, run.values["train/reward@1"])
	require.Equal(t, 5.0, run.values["train/reward@2"])
}

// failing is a backend whose history cannot be read for a while.
type failing struct {
	resumed
	times int
}

func (f *failing) History(ctx context.Context, m *art.Model) ([]art.HistoryRow, error) {
	if f.times > 0 {
		f.times--
		return nil, errors.New("busy")
	}
	return f.resumed.History(ctx, m)
}

// Nothing is taken back, and nothing is lost, while it is not known what the run still has.
func TestTracker_NoHistoryToRewind(t *testing.T) {
	b, written := killed()
	run := &rewindable{fakeRun: &fakeRun{written: written}}
	tracker := newTracker(t, run, track.Options{})
	fails := &failing{b, 2}
	m := train(t, fails, tracker.Events(), 0)
	require.NoError(t, m.Log(t.Context(), "train", nil, map[string]float64{"reward": 5}))
	require.NoError(t, tracker.Close())
	require.Zero(t, fails.times)
	require.Equal(t, 2, run.step)
	require.Equal(t, map[string]float64{"loss/policy@0": 0.1, "train/reward@1": 2, "train/reward@2": 5}, run.values)
}

// A run whose process was killed after its last step is completed when the model is registered again, though nothing is
// trained any more. Nothing is opened for a model without a history.
func TestTracker_Registered(t *testing.T) {
	b, written := killed()
	run := &fakeRun{written: written}
	tracker := newTracker(t, run, track.Options{})
	train(t, b, tracker.Events(), 0)
	require.NoError(t, b.Close())
	require.NoError(t, tracker.Close())
	require.Equal(t, map[string]float64{"loss/policy@0": 0.1, "train/reward@1": 2}, run.values)
	require.Empty(t, run.config)
	require.True(t, run.closed)

	fresh := &fakeRun{}
	tracker = newTracker(t, fresh, track.Options{})
	train(t, &arttest.Backend{}, tracker.Events(), 0)
	require.NoError(t, tracker.Close())
	require.False(t, fresh.closed, "nothing was opened")
}
