package frameworkstest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/frameworks"
)

// rollouts is how many a check plays.
const rollouts = 50

// played is one run of an agent.
type played struct {
	t      *art.Trajectory
	answer string
	err    error
	busy   int
	down   bool
}

// Result is what came of the rollouts of a check.
type Result struct {
	Ended    int // runs in which the agent came to an answer
	Failed   int // runs that ended by an error
	Branches int // additional histories: the agent did not repeat exactly what the model has said
}

// Check plays rollouts of an example's agent whose tools fail at random. Each token that was sampled must be in exactly
// one sample, an answer must be what the model said last, and no run may have more turns than allowed.
func Check(t *testing.T, e *frameworks.Example) Result {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	f := &fake{seed: seed, rollouts: e.Rollouts}
	m := art.NewModel(modelName, nil)
	if err := m.Register(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if e.Start != nil {
		if err := e.Start(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	runs := play(t, e.Play, m, seed)
	var ids []int32
	for _, run := range runs {
		if run.t == nil {
			t.Errorf("a run has no trajectory: %v", run.err)
			continue
		}
		samples := run.t.Samples()
		for _, s := range samples {
			ids = append(ids, s.IDs...)
		}
		if n := len(samples); n > frameworks.MaxTurns {
			t.Errorf("a run has %d turns, at most %d", n, frameworks.MaxTurns)
		} else if last := said(run.t); run.err == nil && run.answer != last {
			t.Errorf("the answer is %q, and the model said %q", run.answer, last)
		}
	}
	slices.Sort(ids)
	if sampled := f.sampled(); !slices.Equal(ids, sampled) {
		t.Errorf("%d tokens are in samples, and %d were sampled", len(ids), len(sampled))
	}
	return summary(t, runs)
}

// play plays the rollouts and returns the runs of the agent, those that failed too.
func play(t *testing.T, inner frameworks.Play, m *art.Model, seed uint64) (runs []played) {
	t.Helper()
	var mu sync.Mutex
	record := func(ctx context.Context, e *frameworks.Env) (*art.Trajectory, string, error) {
		trajectory, answer, err := inner(ctx, e)
		mu.Lock()
		defer mu.Unlock()
		run := played{t: trajectory, answer: answer, err: err}
		run.busy, run.down = e.Desk.Faults()
		runs = append(runs, run)
		return trajectory, answer, err
	}
	rollout := frameworks.Rollout(record, seed, frameworks.Faults{Busy: 0.2, Down: 0.05})(m, nil)
	scenarios, _, _ := frameworks.Scenarios(seed)
	g, err := art.Gather(t.Context(), scenarios[:rollouts], rollout, &art.GatherOptions{Seed: seed, MaxFailureFraction: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, failure := range g.Failures {
		t.Logf("failed: %s", failure.Message)
	}
	if len(g.Trajectories)+len(g.Failures) != rollouts || len(runs) != rollouts {
		t.Fatalf("%d trajectories, %d failures, %d runs", len(g.Trajectories), len(g.Failures), len(runs))
	}
	return runs
}

// said is the text of the newest reply.
func said(t *art.Trajectory) (text string) {
	newest := int32(0)
	for _, h := range t.Histories() {
		for i := range h.Messages {
			if m := &h.Messages[i]; m.Sample != nil && m.Sample.IDs[0] > newest {
				newest, text = m.Sample.IDs[0], m.Content
			}
		}
	}
	return text
}

// summary counts, and fails the test if nothing has failed or nothing has ended well.
func summary(t *testing.T, runs []played) (r Result) {
	t.Helper()
	busy, down := 0, 0
	for _, run := range runs {
		busy += run.busy
		if run.down {
			down++
		}
		if run.err != nil {
			r.Failed++
		} else {
			r.Ended++
		}
		if run.t != nil {
			r.Branches += len(run.t.AdditionalHistories)
		}
	}
	t.Logf("%+v; the desk was busy %d times, and down in %d runs", r, busy, down)
	if busy == 0 || down == 0 || r.Ended == 0 {
		t.Error("the rollouts test nothing")
	}
	return r
}
