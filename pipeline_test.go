package art_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// The tests of the pipeline run in synctest bubbles, as those of gathering do: durations are exact, and a goroutine
// that is left fails the test.

// trainee is a model on a fake backend whose trainings take a while.
type trainee struct {
	*art.Model
	fake  *arttest.Backend
	takes func() time.Duration // a training; nil is a second

	mu      sync.Mutex
	batches [][]*art.TrajectoryGroup // trained on, by step
}

func newTrainee(t *testing.T, opts *art.ModelOptions) *trainee {
	t.Helper()
	x := &trainee{fake: &arttest.Backend{}}
	x.fake.Learn = func(
		ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, _ *art.TrainConfig,
	) error {
		d := time.Second
		if x.takes != nil {
			d = x.takes()
		}
		if !pause(ctx, d) {
			return ctx.Err()
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.batches = append(x.batches, groups)
		return nil
	}
	x.open(t, opts)
	return x
}

// open registers the model, again after a restart.
func (x *trainee) open(t *testing.T, opts *art.ModelOptions) {
	t.Helper()
	if x.Model != nil {
		if err := x.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	x.Model = art.NewModel("m", opts)
	if err := x.Register(context.Background(), x.fake); err != nil {
		t.Fatal(err)
	}
}

// pause waits for d, and reports false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// play asks the model once. The reward differs within a group, and the metrics tell scenario and step.
func (x *trainee) play(ctx context.Context, scenario int, d time.Duration) (*art.Trajectory, error) {
	t := art.NewTrajectory(art.User("?"))
	t.Metrics["scenario"], t.Metrics["began"] = float64(scenario), float64(x.Step())
	if !pause(ctx, d) {
		return nil, ctx.Err()
	}
	_, err := x.Chat(ctx, t, nil)
	t.Reward = art.Rand(ctx).Float64()
	return t, err
}

// second takes a second for each rollout.
func (x *trainee) second(ctx context.Context, scenario int) (*art.Trajectory, error) {
	return x.play(ctx, scenario, time.Second)
}

// trained returns how often each scenario was trained on.
func (x *trainee) trained() map[int]int {
	count := map[int]int{}
	for _, batch := range x.batches {
		for _, g := range batch {
			count[int(g.Trajectories[0].Metrics["scenario"])]++
		}
	}
	return count
}

// row returns the metrics of a split and step.
func (x *trainee) row(t *testing.T, split string, step int) map[string]float64 {
	t.Helper()
	rows, err := x.fake.History(context.Background(), x.Model)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Split == split && r.Step == step {
			return r.Metrics
		}
	}
	t.Fatalf("no row of %s %d among %v", split, step, rows)
	return nil
}

// Whatever rollouts and trainings take, no step is trained on groups that are older than allowed, each has the number
// of groups that was asked for, and no scenario is trained on twice in an epoch.
func TestPipeline_Staleness(t *testing.T) {
	const seed = 7
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, limit := range []int{0, 1, 3} {
		for _, groups := range []int{1, 3} {
			t.Run(fmt.Sprintf("limit %d groups %d", limit, groups), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { checkStaleness(t, random.Uint64(), limit, groups) })
			})
		}
	}
}

func checkStaleness(t *testing.T, seed uint64, limit, groups int) {
	x := newTrainee(t, nil)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	draw := func(n int) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.IntN(n)) * time.Millisecond
	}
	x.takes = func() time.Duration { return draw(2000) }
	result, err := art.Pipeline(t.Context(), x.Model, numbers(1000), func(
		ctx context.Context, scenario int,
	) (*art.Trajectory, error) {
		d := draw(3000)
		if scenario%10 == 0 {
			d *= 5
		}
		return x.play(ctx, scenario, d)
	}, &art.PipelineOptions{
		Steps: 20, Groups: groups, MaxStaleness: &limit, Gather: &art.GatherOptions{GroupSize: 3, Concurrency: 7},
	})
	if err != nil || result.Step != 20 || result.Steps != 20 || result.Groups != 20*groups {
		t.Fatalf("%+v, %v", result, err)
	}
	oldest := 0
	for step, batch := range x.batches {
		if len(batch) != groups {
			t.Errorf("step %d has %d groups", step, len(batch))
		}
		for _, g := range batch {
			for _, trajectory := range g.Trajectories {
				oldest = max(oldest, step-int(trajectory.Metrics["began"]))
			}
		}
		if stored := x.row(t, "train", step)["pipeline/staleness_max"]; stored > float64(limit) {
			t.Errorf("step %d reports an age of %v", step, stored)
		}
	}
	if oldest > limit || limit == 1 && oldest == 0 {
		t.Errorf("a rollout of an age of %d steps was trained on, at most %d are allowed", oldest, limit)
	}
	for scenario, n := range x.trained() {
		if n != 1 {
			t.Errorf("scenario %d was trained on %d times", scenario, n)
		}
	}
	if limit == 0 && len(result.Dropped) > 0 {
		t.Errorf("dropped without running ahead: %v", result.Dropped)
	}
}

// Rollouts of the next step run during a training, and after a training none waits for the slowest of its batch.
func TestPipeline_Overlaps(t *testing.T) {
	for limit, want := range map[int]time.Duration{0: 20 * time.Second, 1: 11 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			x, start := newTrainee(t, nil), time.Now()
			_, err := art.Pipeline(t.Context(), x.Model, numbers(100), x.second,
				&art.PipelineOptions{Steps: 10, Groups: 4, MaxStaleness: &limit})
			if took := time.Since(start); err != nil || took != want {
				t.Errorf("with staleness %d it took %v, want %v: %v", limit, took, want, err)
			}
			m := x.row(t, "train", 5)
			idle := map[int]float64{0: 1, 1: 0}[limit]
			if m["time/trainer_idle_s"] != idle || m["pipeline/rollouts_running"] == 0 || m["pipeline/rollout_tok_per_s"] == 0 {
				t.Errorf("metrics: %v", m)
			}
		})
	}
}

// The last step has what is left, and every scenario is trained on once an epoch.
func TestPipeline_Epochs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrainee(t, nil)
		result, err := art.Pipeline(t.Context(), x.Model, numbers(7), x.second, &art.PipelineOptions{Epochs: 2, Groups: 4})
		if err != nil || result.Steps != 4 || result.Groups != 14 || len(x.batches[3]) != 2 {
			t.Fatalf("%+v, %v", result, err)
		}
		for scenario, n := range x.trained() {
			if n != 2 {
				t.Errorf("scenario %d was trained on %d times", scenario, n)
			}
		}
		if first := x.batches[0][0].Metadata["scenario"]; first != int(x.batches[0][0].Trajectories[0].Metrics["scenario"]) {
			t.Errorf("the group says that its scenario is %v", first)
		}
	})
}

// The two attempts of a group, and the turns of a scenario, have different randomness.
func TestPipeline_Seeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrainee(t, nil)
		_, err := art.Pipeline(t.Context(), x.Model, numbers(2), x.second, &art.PipelineOptions{Epochs: 3, Groups: 2})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[float64]bool{}
		for _, batch := range x.batches {
			for _, row := range rewards(batch) {
				for _, r := range row {
					if seen[r] {
						t.Errorf("reward %v occurs twice", r)
					}
					seen[r] = true
				}
			}
		}
	})
}

// A slow rollout is cut when its group is complete, and holds up nothing.
func TestPipeline_Stragglers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, start := newTrainee(t, nil), time.Now()
		var n atomic.Int64
		result, err := art.Pipeline(t.Context(), x.Model, numbers(100), func(
			ctx context.Context, scenario int,
		) (*art.Trajectory, error) {
			if n.Add(1)%5 == 0 {
				return x.play(ctx, scenario, time.Hour)
			}
			return x.second(ctx, scenario)
		}, &art.PipelineOptions{Steps: 5, Gather: &art.GatherOptions{Extra: 1, Concurrency: 100}})
		if took := time.Since(start); err != nil || took != 6*time.Second {
			t.Fatalf("took %v: %+v, %v", took, result, err)
		}
		for _, batch := range x.batches {
			for _, g := range batch {
				if len(g.Trajectories) != 4 || g.Metrics["rollouts_cut"] != 1 {
					t.Errorf("%d trajectories, %v", len(g.Trajectories), g.Metrics)
				}
			}
		}
		cut := 0.0
		for step := range 5 {
			cut += x.row(t, "train", step)["pipeline/rollouts_cut"]
		}
		if cut < 20 {
			t.Errorf("%v rollouts are reported as cut, of 20 groups that were trained on", cut)
		}
	})
}

// Groups without differences are refilled: each step has as many groups as asked for, and what was dropped is logged.
func TestPipeline_EqualRewards(t *testing.T) {
	flat := func(x *trainee) func(context.Context, int) (*art.Trajectory, error) {
		return func(ctx context.Context, scenario int) (*art.Trajectory, error) {
			trajectory, err := x.second(ctx, scenario)
			if err == nil && scenario%2 == 0 {
				trajectory.Reward = 0.3
			}
			return trajectory, err
		}
	}
	var dropped atomic.Int64
	events := &art.Events{Drop: func(e art.DropEvent) {
		if e.Reason == credit.ReasonNoVariance && e.Group != nil {
			dropped.Add(1)
		}
	}}
	synctest.Test(t, func(t *testing.T) {
		x := newTrainee(t, &art.ModelOptions{Events: events})
		result, err := art.Pipeline(t.Context(), x.Model, numbers(20), flat(x), &art.PipelineOptions{Groups: 2})
		if err != nil || result.Groups != 10 || result.Dropped[credit.ReasonNoVariance] != 10 || dropped.Load() != 10 {
			t.Fatalf("%+v, %v", result, err)
		}
		logged := 0
		for step := range x.Step() {
			logged += len(x.fake.Logged(x.Model, "discarded", step))
		}
		if logged == 0 || logged > 10 {
			t.Errorf("%d groups are logged as discarded", logged)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		x := newTrainee(t, nil)
		result, err := art.Pipeline(t.Context(), x.Model, numbers(20), flat(x),
			&art.PipelineOptions{Groups: 2, KeepUntrainable: true})
		if err != nil || result.Groups != 20 || len(result.Dropped) != 0 {
			t.Fatalf("kept: %+v, %v", result, err)
		}
	})
}

// checker is a backend that skips groups with a reward of 7.
type checker struct{ *arttest.Backend }

func (checker) CheckGroup(g *art.TrajectoryGroup, cfg *art.TrainConfig) credit.Reason {
	if cfg.K == 2 && slices.ContainsFunc(g.Trajectories, func(t *art.Trajectory) bool { return t.Reward == 7 }) {
		return credit.ReasonNotBinary
	}
	return ""
}

// CheckTrain refuses a bonus for entropy.
func (checker) CheckTrain(cfg *art.TrainConfig) error {
	if cfg.EntropyBonus != 0 {
		return art.ErrUnsupported
	}
	return nil
}

// What the backend's Train would refuse is refused before the first rollout.
func TestPipeline_TrainChecker(t *testing.T) {
	x := newTrainee(t, nil)
	x.Model = art.NewModel("checked", nil)
	if err := x.Register(t.Context(), checker{x.fake}); err != nil {
		t.Fatal(err)
	}
	rollout := func(context.Context, int) (*art.Trajectory, error) {
		t.Error("a rollout")
		return nil, nil
	}
	_, err := art.Pipeline(t.Context(), x.Model, numbers(4), rollout,
		&art.PipelineOptions{Train: &art.TrainConfig{EntropyBonus: 0.1}})
	if !errors.Is(err, art.ErrUnsupported) {
		t.Error(err)
	}
	groups := []*art.TrajectoryGroup{{}}
	if _, err := x.Train(t.Context(), groups, &art.TrainConfig{EntropyBonus: 0.1}); !errors.Is(err, art.ErrUnsupported) {
		t.Error(err)
	}
}

// Where the backend says what a training would skip, that is dropped and nothing else, with the backend's reason.
func TestPipeline_GroupChecker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrainee(t, nil)
		if err := x.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		x.Model = art.NewModel("checked", nil)
		if err := x.Register(t.Context(), checker{x.fake}); err != nil {
			t.Fatal(err)
		}
		rollout := func(ctx context.Context, scenario int) (*art.Trajectory, error) {
			trajectory, err := x.second(ctx, scenario)
			if err == nil {
				trajectory.Reward = float64(7 * (scenario % 2))
			}
			return trajectory, err
		}
		cfg := &art.TrainConfig{Objective: credit.ObjectivePassK, K: 2}
		result, err := art.Pipeline(t.Context(), x.Model, numbers(20), rollout, &art.PipelineOptions{Groups: 2, Train: cfg})
		if err != nil || result.Groups != 10 || result.Dropped[credit.ReasonNotBinary] != 10 || len(result.Dropped) != 1 {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// After so many refills a step is made of what there is; without anything the pipeline ends.
func TestPipeline_RefillLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrainee(t, nil)
		rollout := func(good func(int) bool) func(context.Context, int) (*art.Trajectory, error) {
			return func(ctx context.Context, scenario int) (*art.Trajectory, error) {
				trajectory, err := x.second(ctx, scenario)
				if err == nil && !good(scenario) {
					trajectory.Reward = 0
				}
				return trajectory, err
			}
		}
		opts := &art.PipelineOptions{
			Steps: 1, Groups: 3, MaxRefill: 5, InOrder: true, MaxStaleness: new(0), Gather: &art.GatherOptions{Concurrency: 1},
		}
		result, err := art.Pipeline(t.Context(), x.Model, numbers(100), rollout(func(i int) bool { return i == 1 }), opts)
		if err != nil || result.Groups != 1 || result.Dropped[credit.ReasonNoVariance] != 5 {
			t.Fatalf("%+v, %v", result, err)
		}
		opts.Steps, opts.Name = 2, "hopeless"
		result, err = art.Pipeline(t.Context(), x.Model, numbers(100), rollout(func(int) bool { return false }), opts)
		wantErr(t, err, art.ErrCollapsed, "groups in a row without advantages: 5")
		if result.Steps != 0 {
			t.Errorf("%+v", result)
		}
	})
}

// Failed rollouts within the limit leave smaller groups, or none; beyond it the pipeline ends, after the training that
// is in progress.
func TestPipeline_Failures(t *testing.T) {
	boom := errors.New("boom")
	synctest.Test(t, func(t *testing.T) {
		x := newTrainee(t, nil)
		rollout := func(ctx context.Context, scenario int) (*art.Trajectory, error) {
			switch {
			case scenario == 3:
				return nil, boom
			case scenario == 4 && art.Rand(ctx).Float64() < 0.5:
				panic("half")
			}
			return x.second(ctx, scenario)
		}
		result, err := art.Pipeline(t.Context(), x.Model, numbers(20), rollout,
			&art.PipelineOptions{Gather: &art.GatherOptions{MaxFailureFraction: 0.5}})
		if err != nil || result.Dropped[credit.ReasonEmptyGroup] != 1 || x.trained()[3] != 0 {
			t.Fatalf("%+v, %v", result, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		x := newTrainee(t, nil)
		x.takes = func() time.Duration { return time.Hour }
		result, err := art.Pipeline(t.Context(), x.Model, numbers(20), func(
			ctx context.Context, scenario int,
		) (*art.Trajectory, error) {
			trajectory, err := x.second(ctx, scenario)
			if scenario == 5 {
				return nil, boom
			}
			return trajectory, err
		}, &art.PipelineOptions{InOrder: true})
		wantErr(t, err, art.ErrTooManyFailures, "scenario 5, attempt 0", "at most 0")
		if !errors.Is(err, boom) || result.Steps != 1 || x.Step() != 1 {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// An error of a training or an evaluation ends the pipeline, and a panic in either is an error.
func TestPipeline_Errors(t *testing.T) {
	boom := errors.New("boom")
	fails := map[string]func(x *trainee, o *art.PipelineOptions){
		"train": func(x *trainee, _ *art.PipelineOptions) {
			x.fake.Learn = func(context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig) error { return boom }
		},
		"train panic": func(x *trainee, _ *art.PipelineOptions) {
			x.fake.Learn = func(context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig) error { panic(boom) }
		},
		"evaluate": func(_ *trainee, o *art.PipelineOptions) {
			o.Evaluate = func(context.Context) (*art.TrajectoryGroup, error) { return nil, boom }
		},
		"evaluate panic": func(_ *trainee, o *art.PipelineOptions) {
			o.Evaluate = func(context.Context) (*art.TrajectoryGroup, error) { panic(boom) }
		},
		"event panic": func(_ *trainee, o *art.PipelineOptions) {
			o.Gather = &art.GatherOptions{Events: &art.Events{GroupEnd: func(art.GroupEnd) { panic(boom) }}}
		},
	}
	for name, fail := range fails {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				x, o := newTrainee(t, nil), &art.PipelineOptions{Steps: 5}
				fail(x, o)
				result, err := art.Pipeline(t.Context(), x.Model, numbers(20), x.second, o)
				if !errors.Is(err, boom) || result == nil || result.Step != x.Step() {
					t.Errorf("%+v, %v", result, err)
				}
			})
		})
	}
}

// When the context ends, so does everything, at once. A rollout that ignores it is abandoned.
func TestPipeline_Cancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrainee(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		start := time.Now()
		result, err := art.Pipeline(ctx, x.Model, numbers(10), func(
			ctx context.Context, scenario int,
		) (*art.Trajectory, error) {
			if scenario == 9 {
				time.Sleep(time.Hour)
			}
			return x.second(ctx, scenario)
		}, &art.PipelineOptions{
			Steps: 100, InOrder: true, Groups: 2, Gather: &art.GatherOptions{Concurrency: 100},
			Evaluate: func(ctx context.Context) (*art.TrajectoryGroup, error) { pause(ctx, time.Hour); return nil, ctx.Err() },
		})
		wantErr(t, err, context.DeadlineExceeded, "continues")
		if took := time.Since(start); took > 6*time.Second || result.Steps != x.Step() || result.Steps == 0 {
			t.Errorf("took %v: %+v", took, result)
		}
		time.Sleep(2 * time.Hour) // the rollout that was abandoned
	})
}

// A run that is interrupted anywhere, before or after a step is committed, continues with the scenarios that no step
// was trained on: over all, each is trained on once.
func TestPipeline_Resume(t *testing.T) {
	const seed = 3
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, lost := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var interrupt context.CancelFunc
			opts := &art.ModelOptions{Events: &art.Events{Commit: func(art.Commit) {
				if !lost && random.IntN(3) == 0 {
					interrupt()
				}
			}}}
			x := newTrainee(t, opts)
			learn := x.fake.Learn
			x.fake.Learn = func(
				ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, cfg *art.TrainConfig,
			) error {
				if lost && random.IntN(3) == 0 {
					interrupt()
				}
				return learn(ctx, m, groups, cfg)
			}
			interrupts := 0
			for done := false; !done; interrupts++ {
				ctx, cancel := context.WithCancel(t.Context())
				interrupt = cancel
				_, err := art.Pipeline(ctx, x.Model, numbers(40), func(
					ctx context.Context, scenario int,
				) (*art.Trajectory, error) {
					return x.play(ctx, scenario, time.Duration(1+scenario*7%5)*time.Second)
				}, &art.PipelineOptions{Groups: 3, MaxStaleness: new(9)})
				done = err == nil
				cancel()
				x.open(t, opts)
			}
			want := map[int]int{}
			for i := range 40 {
				want[i] = 1
			}
			if got := x.trained(); !maps.Equal(got, want) || interrupts < 3 {
				t.Errorf("after %d interruptions the scenarios were trained on %v times", interrupts, got)
			}
		})
	}
}

// The position belongs to the scenarios and the seed; another name begins anew.
func TestPipeline_ResumeOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrainee(t, nil)
		run := func(n int, o art.PipelineOptions) (*art.PipelineResult, error) {
			return art.Pipeline(t.Context(), x.Model, numbers(n), x.second, &o)
		}
		if result, err := run(8, art.PipelineOptions{}); err != nil || result.Steps != 2 {
			t.Fatalf("%+v, %v", result, err)
		}
		if result, err := run(8, art.PipelineOptions{}); err != nil || result.Steps != 0 || result.Step != 2 {
			t.Errorf("a finished run: %+v, %v", result, err)
		}
		_, err := run(9, art.PipelineOptions{})
		wantErr(t, err, art.ErrInvalid, "8 scenarios and seed 0", "9 and 0", "Name")
		_, err = run(8, art.PipelineOptions{Gather: &art.GatherOptions{Seed: 1}})
		wantErr(t, err, art.ErrInvalid, "8 and 1")
		if result, err := run(9, art.PipelineOptions{Name: "harder"}); err != nil || result.Groups != 9 {
			t.Errorf("another name: %+v, %v", result, err)
		}
		if result, err := run(8, art.PipelineOptions{Epochs: 2}); err != nil || result.Groups != 8 {
			t.Errorf("another epoch: %+v, %v", result, err)
		}
	})
}

// Evaluations run beside training, each measures one policy, and one that is logged is not repeated.
func TestPipeline_Evaluate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTrainee(t, nil)
		var running, calls atomic.Int64
		opts := &art.PipelineOptions{Steps: 9, EvalEvery: 4, MaxStaleness: new(1)}
		opts.Evaluate = func(ctx context.Context) (*art.TrajectoryGroup, error) {
			calls.Add(1)
			if running.Add(1) > 1 {
				t.Error("two evaluations at once")
			}
			defer running.Add(-1)
			return art.Gather(ctx, numbers(3), x.second, &art.GatherOptions{Concurrency: 1})
		}
		start := time.Now()
		if _, err := art.Pipeline(t.Context(), x.Model, numbers(100), x.second, opts); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 15*time.Second { // step 8 at 9 s, then two evaluations
			t.Errorf("took %v", took)
		}
		for _, step := range []int{0, 4, 8, 9} {
			g := x.fake.Logged(x.Model, "val", step)
			if len(g) != 1 || x.row(t, "val", step)["time/eval_s"] != 3 {
				t.Fatalf("step %d: %d groups", step, len(g))
			}
			for _, trajectory := range g[0].Trajectories {
				if first, last, _ := trajectory.PolicySteps(); first != step || last != step {
					t.Errorf("the evaluation of step %d has replies of steps %d to %d", step, first, last)
				}
			}
		}
		x.open(t, nil)
		if _, err := art.Pipeline(t.Context(), x.Model, numbers(100), x.second, opts); err != nil || calls.Load() != 4 {
			t.Errorf("resumed: %d evaluations, %v", calls.Load(), err)
		}
	})
}

// A rollout that is too old while it runs is cancelled, and its scenario is over or run again.
func TestPipeline_RepeatStale(t *testing.T) {
	for repeat, want := range map[bool]int{false: 11, true: 12} {
		synctest.Test(t, func(t *testing.T) {
			x := newTrainee(t, nil)
			var slow atomic.Int64
			result, err := art.Pipeline(t.Context(), x.Model, numbers(12), func(
				ctx context.Context, scenario int,
			) (*art.Trajectory, error) {
				if scenario == 2 && slow.Add(1) <= 4 {
					return x.play(ctx, scenario, time.Hour)
				}
				return x.second(ctx, scenario)
			}, &art.PipelineOptions{Groups: 2, InOrder: true, RepeatStale: repeat, Gather: &art.GatherOptions{Concurrency: 100}})
			if err != nil || result.Groups != want || result.Dropped[credit.ReasonStale] != 1 {
				t.Errorf("RepeatStale %v: %+v, %v", repeat, result, err)
			}
		})
	}
}

// Schedule changes a copy of the configuration.
func TestPipeline_Schedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rates []float64
		x := newTrainee(t, &art.ModelOptions{Events: &art.Events{TrainStart: func(e art.TrainStart) {
			rates = append(rates, e.Config.LearningRate)
		}}})
		cfg := &art.TrainConfig{LearningRate: 1}
		_, err := art.Pipeline(t.Context(), x.Model, numbers(12), x.second, &art.PipelineOptions{
			Train: cfg, Schedule: func(step int, cfg *art.TrainConfig) { cfg.LearningRate /= float64(step + 1) },
		})
		if err != nil || !slices.Equal(rates, []float64{1, 0.5, 1.0 / 3}) || cfg.LearningRate != 1 {
			t.Errorf("rates %v, %v", rates, err)
		}
	})
}

// One error lists everything that is wrong.
func TestPipeline_Invalid(t *testing.T) {
	x := newTrainee(t, nil)
	_, err := art.Pipeline[int](t.Context(), x.Model, nil, nil, &art.PipelineOptions{
		Steps: -1, Groups: -2, MaxGroups: -3, MaxStaleness: new(-4), MaxRefill: -5, EvalEvery: -6,
		Gather: &art.GatherOptions{GroupSize: -7, Extra: -8},
	})
	wantErr(t, err, art.ErrInvalid, "rollout is nil", "no scenarios", "Steps is -1", "Groups is -2", "MaxGroups is -3",
		"MaxStaleness is -4", "MaxRefill is -5", "EvalEvery is -6", "GroupSize is -7", "Extra is -8")
	_, err = art.PipelineFrom(t.Context(), x.Model, nil, &art.PipelineOptions{
		Epochs: 1, InOrder: true, RepeatStale: true, Name: "x", Gather: &art.GatherOptions{},
	})
	wantErr(t, err, art.ErrInvalid, "Gather is set", "Epochs is set", "InOrder is set", "RepeatStale is set",
		"Name is set", "source is nil")
	_, err = art.Pipeline(t.Context(), art.NewModel("other", nil), numbers(1), x.second, nil)
	wantErr(t, err, art.ErrNotRegistered)
	_, err = art.Pipeline(t.Context(), x.Model, numbers(1), x.second,
		&art.PipelineOptions{Train: &art.TrainConfig{Loss: "x"}})
	wantErr(t, err, art.ErrInvalid, "x")
	idle := &art.PipelineOptions{EvalEvery: 5, MaxRefill: 5, KeepUntrainable: true}
	_, err = art.Pipeline(t.Context(), x.Model, numbers(1), x.second, idle)
	wantErr(t, err, art.ErrInvalid, "EvalEvery is 5, and Evaluate is nil", "MaxRefill is 5, and KeepUntrainable is set")
	_, err = art.PipelineFrom(t.Context(), x.Model, make(queue), idle)
	wantErr(t, err, art.ErrInvalid, "EvalEvery is 5, and Evaluate is nil", "MaxRefill is 5, and KeepUntrainable is set")
}

// queue is a source of groups.
type queue chan *art.TrajectoryGroup

func (q queue) Next(ctx context.Context) (*art.TrajectoryGroup, error) {
	select {
	case g, ok := <-q:
		if !ok {
			return nil, io.EOF
		}
		return g, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// sampledBy returns a group that was sampled by a step.
func sampledBy(step int) *art.TrajectoryGroup {
	g := &art.TrajectoryGroup{}
	for i := range 2 {
		reply := art.Assistant("x")
		reply.Sample = &art.Sample{Step: step}
		t := art.NewTrajectory(art.User("?"), reply)
		t.Reward = float64(i)
		g.Trajectories = append(g.Trajectories, t)
	}
	return g
}

// Groups of a source are trained on as they come, but those that are too old; the last step has what is left.
func TestPipelineFrom_Source(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, source := newTrainee(t, nil), make(queue)
		go func() {
			for i := range 12 {
				time.Sleep(time.Second)
				step := x.Step()
				if i%4 == 3 {
					step -= 2
				}
				source <- sampledBy(step)
			}
			close(source)
		}()
		result, err := art.PipelineFrom(t.Context(), x.Model, source,
			&art.PipelineOptions{Groups: 2, MaxStaleness: new(1)})
		if err != nil || result.Groups != 9 || result.Steps != 5 || result.Dropped[credit.ReasonStale] != 3 {
			t.Errorf("%+v, %v", result, err)
		}
		if m := x.row(t, "train", 0); m["pipeline/rollouts_running"] != 0 || m["time/trainer_idle_s"] != 2 {
			t.Errorf("metrics: %v", m)
		}
	})
}

// At the last step the pipeline hands back what it has taken from the source; an error of the source ends it.
func TestPipelineFrom_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, source := newTrainee(t, nil), make(queue, 10)
		for range 10 {
			source <- sampledBy(0)
		}
		result, err := art.PipelineFrom(t.Context(), x.Model, source, &art.PipelineOptions{Groups: 2, Steps: 1})
		if err != nil || result.Groups != 2 || len(result.Unused)+len(source) != 8 {
			t.Errorf("%+v, %d left: %v", result, len(source), err)
		}
		boom := errors.New("boom")
		_, err = art.PipelineFrom(t.Context(), x.Model, failing{boom}, nil)
		if !errors.Is(err, boom) {
			t.Errorf("error %v", err)
		}
	})
}

type failing struct{ err error }

func (f failing) Next(context.Context) (*art.TrajectoryGroup, error) { return nil, f.err }
