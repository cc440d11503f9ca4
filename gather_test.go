package art_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// The tests of gathering run in synctest bubbles: time is simulated, and a bubble ends only after every goroutine in it
// has, so that each of them also tests for leaks.

// numbers returns 0 to n-1.
func numbers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// rewarded returns a trajectory with a reward.
func rewarded(reward float64) *art.Trajectory {
	t := art.NewTrajectory(art.User("?"))
	t.Reward = reward
	return t
}

// rewards returns the rewards of groups.
func rewards(groups []*art.TrajectoryGroup) [][]float64 {
	out := [][]float64{}
	for _, g := range groups {
		var row []float64
		for _, t := range g.Trajectories {
			row = append(row, t.Reward)
		}
		out = append(out, row)
	}
	return out
}

var wantEqual, wantErr = arttest.WantEqual, arttest.WantErr

// Whatever the order in which rollouts end, and however many run at once, the result is the same.
func TestGatherGroups_OrderAndConcurrency(t *testing.T) {
	const seed = 1
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var want [][]float64
	for _, concurrency := range []int{1, 3, 100} {
		synctest.Test(t, func(t *testing.T) {
			pauses := make(chan time.Duration, 100)
			for range cap(pauses) {
				pauses <- time.Duration(random.IntN(1000)) * time.Millisecond
			}
			var running, most atomic.Int64
			rollout := func(ctx context.Context, scenario int) (*art.Trajectory, error) {
				n := running.Add(1)
				defer running.Add(-1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				time.Sleep(<-pauses)
				return rewarded(float64(scenario) + art.Rand(ctx).Float64()), nil
			}
			groups, err := art.GatherGroups(t.Context(), numbers(7), rollout,
				&art.GatherOptions{GroupSize: 3, Concurrency: concurrency})
			if err != nil {
				t.Fatal(err)
			}
			if got, limit := most.Load(), int64(min(concurrency, 21)); got != limit {
				t.Errorf("%d rollouts at once, want %d", got, limit)
			}
			got := rewards(groups)
			for i, row := range got {
				if len(row) != 3 || math.Floor(row[0]) != float64(i) || row[0] == row[1] {
					t.Errorf("group %d has rewards %v", i, row)
				}
			}
			if want == nil {
				want = got
			}
			wantEqual(t, fmt.Sprintf("rewards with concurrency %d", concurrency), got, want)
		})
	}
}

func TestGatherGroups_Defaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int64
		start := time.Now()
		groups, err := art.GatherGroups(t.Context(), numbers(5), func(context.Context, int) (*art.Trajectory, error) {
			running.Add(1)
			time.Sleep(time.Second)
			return &art.Trajectory{}, nil
		}, nil)
		if err != nil || len(groups) != 5 || len(groups[0].Trajectories) != 4 {
			t.Fatalf("%d groups, error %v", len(groups), err)
		}
		// 20 rollouts of one second, 16 at once
		wantEqual(t, "duration", time.Since(start), 2*time.Second)
		first := groups[0].Trajectories[0]
		if first.Duration != time.Second || !first.Start.Equal(start) {
			t.Errorf("start %v, duration %v: not finished by the gather", first.Start, first.Duration)
		}
	})
	groups, err := art.GatherGroups(t.Context(), nil,
		func(context.Context, int) (*art.Trajectory, error) { return nil, nil }, nil)
	if err != nil || len(groups) != 0 {
		t.Errorf("without scenarios: %v, %v", groups, err)
	}
}

func TestGatherGroups_KeepsDuration(t *testing.T) {
	group, err := art.Gather(t.Context(), numbers(1), func(context.Context, int) (*art.Trajectory, error) {
		return &art.Trajectory{Duration: time.Hour}, nil
	}, nil)
	if err != nil || group.Trajectories[0].Duration != time.Hour {
		t.Errorf("duration %v, error %v", group.Trajectories[0].Duration, err)
	}
}

// A failed rollout is a Failure of its group, and other rollouts go on.
func TestGatherGroups_Failures(t *testing.T) {
	cases := []struct {
		name     string
		rollout  func() (*art.Trajectory, error)
		typ      string
		message  string
		hasStack bool
	}{
		{"error", func() (*art.Trajectory, error) { return nil, &fs.PathError{Op: "open", Path: "x", Err: fs.ErrExist} }, "*fs.PathError", "open x", false},
		{"wrapped", func() (*art.Trajectory, error) { return nil, fmt.Errorf("ctx: %w", &fs.PathError{Err: fs.ErrExist}) }, "*fs.PathError", "ctx:", false},
		{"error with trajectory", func() (*art.Trajectory, error) { return rewarded(1), errors.New("boom") }, "*errors.errorString", "boom", false},
		{"panic", func() (*art.Trajectory, error) { panic("oh no") }, "panic", "panic: oh no", true},
		{"panic with error", func() (*art.Trajectory, error) { panic(fs.ErrExist) }, "panic", fs.ErrExist.Error(), true},
		{"goexit", func() (*art.Trajectory, error) { runtime.Goexit(); return nil, nil }, "*errors.errorString", "FailNow", false},
		{"nothing", func() (*art.Trajectory, error) { return nil, nil }, "*errors.errorString", "neither a trajectory nor an error", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				groups, err := art.GatherGroups(t.Context(), numbers(3), func(
					_ context.Context, scenario int,
				) (*art.Trajectory, error) {
					if scenario == 1 {
						return c.rollout()
					}
					return rewarded(float64(scenario)), nil
				}, &art.GatherOptions{GroupSize: 2, MaxFailures: 2})
				if err != nil {
					t.Fatal(err)
				}
				wantEqual(t, "rewards", rewards(groups), [][]float64{{0, 0}, nil, {2, 2}})
				failures := groups[1].Failures
				if len(failures) != 2 || len(groups[0].Failures)+len(groups[2].Failures) != 0 {
					t.Fatalf("failures: %+v", groups)
				}
				for i, f := range failures {
					if f.Scenario != 1 || f.Attempt != i || f.Tries != 1 || f.Type != c.typ ||
						!strings.Contains(f.Message, c.message) {
						t.Errorf("failure %d: %+v", i, f)
					}
					if strings.Contains(f.Stack, "gather_test.go") != c.hasStack {
						t.Errorf("stack: %q", f.Stack)
					}
				}
			})
		})
	}
}

func TestGatherGroups_Timeout(t *testing.T) {
	release := make(chan struct{})
	cases := []struct {
		name    string
		rollout func(ctx context.Context) (*art.Trajectory, error)
		message string
		took    time.Duration
	}{
		{"returns its context's error", func(ctx context.Context) (*art.Trajectory, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("call 3: %w", ctx.Err())
		}, "did not return within 5s: call 3: context deadline exceeded", 5 * time.Second},
		{"returns another error", func(ctx context.Context) (*art.Trajectory, error) {
			<-ctx.Done()
			return nil, errors.New("broken pipe")
		}, "did not return within 5s: context deadline exceeded: broken pipe", 5 * time.Second},
		{"returns late", func(context.Context) (*art.Trajectory, error) {
			time.Sleep(5500 * time.Millisecond)
			return rewarded(9), nil
		}, "did not return within 5s: context deadline exceeded", 5500 * time.Millisecond},
		{"does not return", func(context.Context) (*art.Trajectory, error) {
			<-release
			return rewarded(9), nil
		}, "did not return within 5s: context deadline exceeded: did not return after its context had ended", 6 * time.Second},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release = make(chan struct{})
				start := time.Now()
				group, err := art.Gather(t.Context(), numbers(2), func(ctx context.Context, scenario int) (*art.Trajectory, error) {
					if scenario == 0 {
						return c.rollout(ctx)
					}
					return rewarded(1), nil
				}, &art.GatherOptions{Timeout: 5 * time.Second, MaxFailures: 1})
				if err != nil {
					t.Fatal(err)
				}
				wantEqual(t, "duration", time.Since(start), c.took)
				close(release) // the abandoned rollout returns now; its result must be dropped
				synctest.Wait()
				wantEqual(t, "rewards", rewards([]*art.TrajectoryGroup{group}), [][]float64{{1}})
				if len(group.Failures) != 1 || !strings.Contains(group.Failures[0].Message, c.message) {
					t.Errorf("failures: %+v", group.Failures)
				}
			})
		})
	}
}

func TestGatherGroups_Retries(t *testing.T) {
	var elapsed []time.Duration
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			var draws []uint64
			group, err := art.Gather(t.Context(), numbers(1), func(ctx context.Context, _ int) (*art.Trajectory, error) {
				draws = append(draws, art.Rand(ctx).Uint64())
				if len(draws) < 4 {
					return nil, errors.New("not yet")
				}
				return rewarded(1), nil
			}, &art.GatherOptions{Retries: 3})
			if err != nil || len(group.Trajectories) != 1 || len(group.Failures) != 0 {
				t.Fatalf("%+v, %v", group, err)
			}
			if slices.Sort(draws); len(slices.Compact(draws)) != 4 {
				t.Errorf("retries repeat the randomness of what failed: %v", draws)
			}
			elapsed = append(elapsed, time.Since(start))
		})
	}
	// 250 + 500 + 1000 ms, each shortened by up to a half
	if elapsed[0] <= 875*time.Millisecond || elapsed[0] > 1750*time.Millisecond || elapsed[0] != elapsed[1] {
		t.Errorf("backoff took %v, want the same twice, between 875 ms and 1.75 s", elapsed)
	}
}

func TestGatherGroups_RetriesEnd(t *testing.T) {
	cases := []struct {
		err   error
		tries int
	}{
		{errors.New("flaky"), 3},
		{&art.Error{Op: "complete", Err: art.ErrInvalid}, 3},
		{&art.Error{Op: "complete", Err: art.ErrNotRegistered}, 1},
		{fmt.Errorf("agent: %w", art.ErrClosed), 1},
		{art.ErrFrozen, 1},
		{art.ErrUnsupported, 1},
	}
	for _, c := range cases {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			_, err := art.Gather(t.Context(), numbers(1), func(context.Context, int) (*art.Trajectory, error) {
				tries++
				return nil, c.err
			}, &art.GatherOptions{Retries: 2})
			wantErr(t, err, art.ErrTooManyFailures)
			if !errors.Is(err, c.err) || tries != c.tries {
				t.Errorf("%v: %d tries, want %d; error %v", c.err, tries, c.tries, err)
			}
		})
	}
}

// The backoff ends with the context.
func TestGatherGroups_CancelDuringBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := art.Gather(ctx, numbers(1), func(context.Context, int) (*art.Trajectory, error) {
			return nil, errors.New("flaky")
		}, &art.GatherOptions{Retries: 9, Backoff: time.Hour})
		if wantErr(t, err, context.DeadlineExceeded); time.Since(start) < 15*time.Second || time.Since(start) > time.Minute {
			t.Errorf("took %v", time.Since(start))
		}
	})
}

func TestGatherGroups_Budget(t *testing.T) {
	cases := []struct {
		name        string
		count       int
		fraction    float64
		fails, size int
		ok          bool
	}{
		{"none allowed", 0, 0, 1, 10, false},
		{"none failed", 0, 0, 0, 10, true},
		{"within count", 2, 0, 2, 10, true},
		{"over count", 2, 0, 3, 10, false},
		{"within fraction", 0, 0.29, 29, 100, true},
		{"over fraction", 0, 0.29, 30, 100, false},
		{"fraction rounds down", 0, 0.19, 2, 10, false},
		{"all allowed", 0, 1, 10, 10, true},
		{"count is more", 5, 0.1, 5, 10, true},
		{"fraction is more", 1, 0.5, 5, 10, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				group, err := art.Gather(t.Context(), numbers(c.size), func(_ context.Context, i int) (*art.Trajectory, error) {
					if i < c.fails {
						return nil, fmt.Errorf("scenario %d is hard", i)
					}
					return rewarded(1), nil
				}, &art.GatherOptions{Concurrency: 1, MaxFailures: c.count, MaxFailureFraction: c.fraction})
				if !c.ok {
					wantErr(t, err, art.ErrTooManyFailures, fmt.Sprintf("%d of %d", c.fails, c.size),
						"scenario 0, attempt 0: scenario 0 is hard")
				} else if err != nil {
					t.Error(err)
				}
				if len(group.Failures) != c.fails {
					t.Errorf("%d failures, want %d", len(group.Failures), c.fails)
				}
				if complete := len(group.Trajectories) == c.size-c.fails; complete != c.ok {
					t.Errorf("%d trajectories", len(group.Trajectories))
				}
			})
		})
	}
}

// Over budget, the rollouts that are running are cancelled and waited for, and the complete groups are returned.
func TestGatherGroups_OverBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int64
		groups, err := art.GatherGroups(t.Context(), numbers(9), func(
			ctx context.Context, scenario int,
		) (*art.Trajectory, error) {
			if scenario == 0 {
				return rewarded(0), nil
			}
			if scenario <= 4 {
				time.Sleep(time.Duration(scenario) * time.Second)
				return nil, errors.New("boom")
			}
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond) // cleaning up
			ended.Add(1)
			return nil, ctx.Err()
		}, &art.GatherOptions{GroupSize: 1, Concurrency: 7, MaxFailures: 3})
		wantErr(t, err, art.ErrTooManyFailures, "4 of 9, at most 3 allowed",
			"too many rollouts failed", "scenario 1, attempt 0 and 3 more: boom")
		if n := ended.Load(); n != 4 {
			t.Errorf("%d rollouts had ended when the gather did, want the 4 that were running", n)
		}
		wantEqual(t, "rewards of complete groups", rewards(groups), [][]float64{{0}, nil, nil, nil, nil})
	})
}

func TestGatherGroups_Cancel(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprintf("deaf=%v", deaf), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Minute, func() { cancel(errors.New("shutdown")) })
				start := time.Now()
				groups, err := art.GatherGroups(ctx, numbers(4), func(ctx context.Context, scenario int) (*art.Trajectory, error) {
					switch {
					case scenario%2 == 0:
						return rewarded(float64(scenario)), nil
					case deaf:
						<-release
						return rewarded(99), nil
					}
					<-ctx.Done()
					return nil, ctx.Err()
				}, &art.GatherOptions{GroupSize: 2})
				took := time.Since(start)
				close(release)
				synctest.Wait()
				wantErr(t, err, context.Canceled, "shutdown")
				if errors.Is(err, art.ErrTooManyFailures) {
					t.Errorf("rollouts that were cancelled count as failed: %v", err)
				}
				wantEqual(t, "rewards of complete groups", rewards(groups), [][]float64{{0, 0}, {2, 2}})
				if took > time.Minute+time.Second || !deaf && took > time.Minute {
					t.Errorf("returned %v after the start", took)
				}
			})
		})
	}
	t.Run("after the end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := art.Gather(ctx, numbers(1), func(context.Context, int) (*art.Trajectory, error) {
				cancel()
				return rewarded(1), nil
			}, nil)
			if err != nil {
				t.Errorf("a gather that is complete fails: %v", err)
			}
		})
	})
}

func TestGatherGroups_After(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		after := func(_ context.Context, g *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
			switch g.Trajectories[0].Reward {
			case 0: // comes while scenario 3 waits for it
				close(release)
				return nil, nil
			case 1:
				g.Trajectories[0].Reward = 10
				return []*art.TrajectoryGroup{g}, nil
			case 2:
				return []*art.TrajectoryGroup{g, nil, {Trajectories: []*art.Trajectory{rewarded(20)}}}, nil
			}
			return []*art.TrajectoryGroup{g}, nil
		}
		groups, err := art.GatherGroups(t.Context(), numbers(4), func(
			_ context.Context, scenario int,
		) (*art.Trajectory, error) {
			if scenario == 3 {
				<-release
			}
			return rewarded(float64(scenario)), nil
		}, &art.GatherOptions{GroupSize: 2, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups[:1] {
			slices.SortFunc(g.Trajectories, func(a, b *art.Trajectory) int { return int(b.Reward - a.Reward) })
		}
		wantEqual(t, "rewards", rewards(groups), [][]float64{{10, 1}, {2, 2}, {20}, {3, 3}})
	})
}

// Each reason is quoted once, at most three of them, with how often there were more.
func TestGatherGroups_Reasons(t *testing.T) {
	kinds := []error{errors.New("a"), errors.New("b"), &art.Error{Op: "complete", Err: art.ErrClosed}, errors.New("d")}
	opts := &art.GatherOptions{GroupSize: 2, Concurrency: 1, MaxFailures: 10,
		After: func(_ context.Context, g *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
			if len(g.Trajectories) > 0 {
				return nil, &art.Error{Op: "judge x", Err: errors.New("down")}
			}
			return []*art.TrajectoryGroup{g}, nil
		}}
	rollout := func(_ context.Context, scenario int) (*art.Trajectory, error) {
		if scenario < 6 {
			return nil, kinds[scenario%4]
		}
		return rewarded(1), nil
	}
	_, err := art.GatherGroups(t.Context(), numbers(6), rollout, opts)
	wantErr(t, err, art.ErrTooManyFailures, "too many rollouts failed: 11 of 12, at most 10 allowed; "+
		"scenario 0, attempt 0 and 3 more: a; scenario 1, attempt 0 and 2 more: b; "+
		"scenario 2, attempt 0 and 1 more: complete: backend is closed (fix the rollout")
	if !errors.Is(err, kinds[0]) || !errors.Is(err, art.ErrClosed) || errors.Is(err, kinds[3]) {
		t.Errorf("what is quoted is wrapped: %v", err)
	}
	groups := numbers(12)[6:]
	_, err = art.GatherGroups(t.Context(), groups, rollout, opts)
	wantErr(t, err, art.ErrTooManyFailures,
		"too many groups could not be judged or filtered: 12 of 12, at most 10 allowed; "+
			"scenario 0 and 5 more: after hook: judge x: down (fix what GatherOptions.After does, or the judge")
}

// A hook that fails makes its own group fail, within the budget, and no other.
func TestGatherGroups_AfterFails(t *testing.T) {
	hooks := map[string]func() ([]*art.TrajectoryGroup, error){
		"judge is down": func() ([]*art.TrajectoryGroup, error) { return nil, errors.New("judge is down") },
		"panic: oops":   func() ([]*art.TrajectoryGroup, error) { panic("oops") },
		"Goexit":        func() ([]*art.TrajectoryGroup, error) { runtime.Goexit(); return nil, nil },
	}
	for message, hook := range hooks {
		for _, budget := range []int{2, 3} {
			synctest.Test(t, func(t *testing.T) {
				groups, err := art.GatherGroups(t.Context(), numbers(2), func(
					_ context.Context, scenario int,
				) (*art.Trajectory, error) {
					return rewarded(float64(scenario)), nil
				}, &art.GatherOptions{GroupSize: 3, Concurrency: 1, MaxFailures: budget, After: func(
					_ context.Context, g *art.TrajectoryGroup,
				) ([]*art.TrajectoryGroup, error) {
					if g.Trajectories[0].Reward == 0 {
						return hook()
					}
					return []*art.TrajectoryGroup{g}, nil
				}})
				if budget == 2 {
					wantErr(t, err, art.ErrTooManyFailures, "3 of 6", "scenario 0: after hook: ", message,
						"fix what GatherOptions.After")
					if strings.Count(err.Error(), message) != 1 || strings.Contains(err.Error(), "rollout") {
						t.Errorf("it is said once, and of no rollout: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				wantEqual(t, "rewards", rewards(groups), [][]float64{nil, {1, 1, 1}})
				for i, f := range groups[0].Failures {
					if f.Attempt != i || f.Tries != 1 || !strings.Contains(f.Message, message) {
						t.Errorf("failure: %+v", f)
					}
				}
			})
		}
	}
}

// When the context ends during a hook, its group is incomplete, whether the hook returns or not.
func TestGatherGroups_CancelDuringAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		groups, err := art.GatherGroups(ctx, numbers(2), func(_ context.Context, scenario int) (*art.Trajectory, error) {
			return rewarded(float64(scenario)), nil
		}, &art.GatherOptions{GroupSize: 1, After: func(
			ctx context.Context, g *art.TrajectoryGroup,
		) ([]*art.TrajectoryGroup, error) {
			if g.Trajectories[0].Reward == 0 {
				<-release
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		close(release)
		wantErr(t, err, context.DeadlineExceeded)
		wantEqual(t, "groups", rewards(groups), [][]float64{})
	})
}

func TestGatherGroups_Progress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int64
		var seen []art.GatherProgress // no lock: calls are one at a time, or the race detector reports it
		_, err := art.GatherGroups(t.Context(), numbers(5), func(_ context.Context, scenario int) (*art.Trajectory, error) {
			if scenario == 4 {
				time.Sleep(time.Second)
				return nil, errors.New("boom")
			}
			return rewarded(float64(scenario)), nil
		}, &art.GatherOptions{GroupSize: 2, MaxFailures: 2, Events: &art.Events{RolloutEnd: func(e art.RolloutEnd) {
			if running.Add(1) != 1 {
				t.Error("two calls at once")
			}
			time.Sleep(time.Millisecond)
			seen = append(seen, e.Progress)
			running.Add(-1)
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) != 10 || !slices.IsSortedFunc(seen, func(a, b art.GatherProgress) int { return a.Done - b.Done }) {
			t.Errorf("progress: %v", seen)
		}
		wantEqual(t, "the last call", seen[len(seen)-1], art.GatherProgress{Done: 10, Total: 10, Failed: 2, Reward: 1.5})
	})
}

func TestGatherGroups_ProgressPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		_, err := art.GatherGroups(t.Context(), numbers(50), func(context.Context, int) (*art.Trajectory, error) {
			return rewarded(1), nil
		}, &art.GatherOptions{Events: &art.Events{RolloutEnd: func(art.RolloutEnd) {
			calls.Add(1)
			panic(fs.ErrExist)
		}}})
		wantErr(t, err, fs.ErrExist, "event function: panic")
		if calls.Load() != 1 {
			t.Errorf("%d calls, want 1: the gather goes on after the panic", calls.Load())
		}
	})
}

func TestGatherGroups_Invalid(t *testing.T) {
	rollout := func(context.Context, int) (*art.Trajectory, error) { return rewarded(1), nil }
	_, err := art.GatherGroups(t.Context(), numbers(1), rollout, &art.GatherOptions{
		GroupSize: -1, Concurrency: -2, Timeout: -3, Retries: -4, Backoff: -5, MaxFailures: -6, MaxFailureFraction: math.NaN(),
	})
	wantErr(t, err, art.ErrInvalid, "GroupSize", "Concurrency", "Timeout", "Retries", "Backoff", "MaxFailures",
		"MaxFailureFraction is NaN")
	_, err = art.GatherGroups[int](t.Context(), numbers(1), nil, &art.GatherOptions{MaxFailureFraction: 1.5})
	wantErr(t, err, art.ErrInvalid, "rollout is nil", "1.5")
	group, err := art.Gather(t.Context(), numbers(1), rollout, &art.GatherOptions{
		GroupSize: 2, After: func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) { return nil, nil },
	})
	if wantErr(t, err, art.ErrInvalid, "GroupSize", "After", "GatherGroups"); group != nil {
		t.Errorf("group: %v", group)
	}
	if group, err = art.Gather(t.Context(), numbers(1), rollout, &art.GatherOptions{Retries: -1}); group != nil {
		t.Errorf("group of invalid options: %v", group)
	}
	wantErr(t, err, art.ErrInvalid, "Retries")
}

// Gather makes one group in the order of scenarios, with the randomness of first attempts.
func TestGather_Flat(t *testing.T) {
	draw := func(ctx context.Context, scenario int) (*art.Trajectory, error) {
		if scenario == 2 {
			return nil, errors.New("boom")
		}
		return rewarded(float64(scenario) + art.Rand(ctx).Float64()), nil
	}
	flat, err := art.Gather(t.Context(), numbers(4), draw, &art.GatherOptions{MaxFailures: 1, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := art.GatherGroups(t.Context(), numbers(4), draw,
		&art.GatherOptions{GroupSize: 2, MaxFailures: 2, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	firsts := []float64{
		groups[0].Trajectories[0].Reward, groups[1].Trajectories[0].Reward, groups[3].Trajectories[0].Reward,
	}
	wantEqual(t, "rewards", rewards([]*art.TrajectoryGroup{flat}), [][]float64{firsts})
	if len(flat.Failures) != 1 || flat.Failures[0].Scenario != 2 || flat.Failures[0].Attempt != 0 {
		t.Errorf("failures: %+v", flat.Failures)
	}
}

// With Extra a group has the first trajectories to end, in the order of attempts, and the others are cut. Failures are
// made up for.
func TestGatherGroups_Extra(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cancelled atomic.Int64
		attempts := map[int]*atomic.Int64{0: {}, 1: {}}
		start := time.Now()
		groups, err := art.GatherGroups(t.Context(), numbers(2), func(
			ctx context.Context, scenario int,
		) (*art.Trajectory, error) {
			n := attempts[scenario].Add(1)
			switch {
			case scenario == 0 && n == 1:
				return nil, errors.New("boom")
			case n == 2:
				<-ctx.Done()
				cancelled.Add(1)
				return nil, ctx.Err()
			}
			time.Sleep(time.Duration(n) * time.Second)
			return rewarded(float64(n)), nil
		}, &art.GatherOptions{GroupSize: 3, Extra: 2, MaxFailures: 1})
		if err != nil || cancelled.Load() != 2 || time.Since(start) != 5*time.Second {
			t.Fatalf("%d cancelled after %v, %v", cancelled.Load(), time.Since(start), err)
		}
		for i, want := range []struct {
			rewards       []float64
			failures, cut int
		}{{[]float64{3, 4, 5}, 1, 1}, {[]float64{1, 3, 4}, 0, 2}} {
			got := slices.Sorted(slices.Values(rewards(groups)[i]))
			wantEqual(t, fmt.Sprintf("rewards of group %d", i), got, want.rewards)
			if n := len(groups[i].Failures); n != want.failures || groups[i].Metrics["rollouts_cut"] != float64(want.cut) {
				t.Errorf("group %d has %d failures and %v", i, n, groups[i].Metrics)
			}
		}
	})
}
