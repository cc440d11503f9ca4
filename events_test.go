package art_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// eventLog records events in order.
type eventLog struct{ lines []string }

func (l *eventLog) addf(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// events returns callbacks for all events.
func (l *eventLog) events() *art.Events {
	return &art.Events{
		GatherStart:  func(e art.GatherStart) { l.addf("gather %d x %d, seed %d", e.Scenarios, e.GroupSize, e.Seed) },
		RolloutStart: func(e art.RolloutStart) { l.addf("start %d.%d", e.Scenario, e.Attempt) },
		RolloutEnd:   l.rolloutEnd,
		GroupEnd:     func(e art.GroupEnd) { l.addf("group %d: %d", e.Scenario, len(e.Groups)) },
		GatherEnd:    func(e art.GatherEnd) { l.addf("gathered %d of %d, %v", e.Progress.Done, e.Progress.Total, e.Err) },
		TrainStart: func(e art.TrainStart) {
			l.addf("train %s %d: %d groups, %d trajectories, rate %v", e.Model.Name(), e.Step, e.Groups, e.Trajectories,
				e.Config.LearningRate)
		},
		OptimizerStep: func(e art.OptimizerStep) { l.addf("optimizer step %d of %d", e.Done, e.Total) },
		Skip:          func(e art.SkipEvent) { l.addf("skip %d: %d %s", e.Step, e.Group, e.Reason) },
		Commit:        func(e art.Commit) { l.addf("commit %d of %d groups", e.Result.Step, len(e.Groups)) },
		Register:      func(e art.Registration) { l.addf("registered %s at %d", e.Model.Name(), e.Step) },
		TrainError:    func(e art.TrainError) { l.addf("error %d: %v", e.Step, e.Err) },
		Log:           func(e art.LogEvent) { l.addf("log %s %d: reward %v", e.Split, e.Step, e.Metrics[e.Split+"/reward"]) },
	}
}

func (l *eventLog) rolloutEnd(e art.RolloutEnd) {
	if e.Failure != nil {
		l.addf("failed %d.%d: %s", e.Scenario, e.Attempt, e.Failure.Message)
		return
	}
	l.addf("end %d.%d: %v, %d tokens", e.Scenario, e.Attempt, e.Trajectory.Reward, e.Progress.Tokens)
}

// Events of a gather come in the order in which things happen.
func TestEvents_Gather(t *testing.T) {
	var log eventLog
	m := registered(t, &arttest.Backend{Reply: arttest.Script("four")}, nil)
	rollout := func(ctx context.Context, n int) (*art.Trajectory, error) {
		if n == 1 {
			return nil, errors.New("boom")
		}
		trajectory := art.NewTrajectory(art.User("hi"))
		_, err := m.Chat(ctx, trajectory, nil)
		trajectory.Reward = 2
		return trajectory, err
	}
	_, err := art.GatherGroups(t.Context(), numbers(2), rollout,
		&art.GatherOptions{GroupSize: 2, Concurrency: 1, MaxFailures: 2, Seed: 7, Events: log.events()})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "events", log.lines, []string{
		"gather 2 x 2, seed 7",
		"start 0.0", "end 0.0: 2, 4 tokens", "start 0.1", "end 0.1: 2, 8 tokens", "group 0: 1",
		"start 1.0", "failed 1.0: boom", "start 1.1", "failed 1.1: boom", "group 1: 1",
		"gathered 4 of 4, <nil>",
	})
}

// Events of a model report a step, what it skipped, a training that fails, and what is logged.
func TestEvents_Model(t *testing.T) {
	var log eventLog
	fail := false
	learn := func(context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig) error {
		if fail {
			return errors.New("diverged")
		}
		return nil
	}
	m := registered(t, &arttest.Backend{Learn: learn}, &art.ModelOptions{Events: log.events()})
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{rewarded(1), rewarded(1)}}}
	if _, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 0.5}); err != nil {
		t.Fatal(err)
	}
	if err := m.Log(t.Context(), "val", groups, nil); err != nil {
		t.Fatal(err)
	}
	fail = true
	if _, err := m.Train(t.Context(), groups, nil); err == nil {
		t.Fatal("no error")
	}
	name := m.Name()
	wantEqual(t, "events", log.lines, []string{
		"registered " + name + " at 0", "train " + name + " 1: 1 groups, 2 trajectories, rate 0.5", "optimizer step 1 of 1", "skip 0: 0 no_samples", "skip 0: 0 no_samples", "commit 1 of 1 groups",
		"log val 1: reward 1",
		"train " + name + " 2: 1 groups, 2 trajectories, rate 5e-06", "error 2: diverged",
	})
}

// A panic in the last event of a gather is not lost.
func TestEvents_PanicAtEnd(t *testing.T) {
	_, err := art.GatherGroups(t.Context(), numbers(1),
		func(context.Context, int) (*art.Trajectory, error) { return rewarded(1), nil },
		&art.GatherOptions{Events: &art.Events{GatherEnd: func(art.GatherEnd) { panic(fs.ErrExist) }}})
	wantErr(t, err, fs.ErrExist, "event function: panic")
}

// JoinEvents calls all, in order, and needs none.
func TestJoinEvents(t *testing.T) {
	var a, b eventLog
	joined := art.JoinEvents(nil, a.events(), nil, b.events())
	joined.Commit(art.Commit{Result: &art.TrainResult{Step: 3}})
	joined.GatherStart(art.GatherStart{Scenarios: 1})
	wantEqual(t, "both", a.lines, b.lines)
	wantEqual(t, "calls", len(a.lines), 2)
	if none := art.JoinEvents(); none == nil || none.Commit != nil {
		t.Error("events of nobody have a function")
	}
}

// Completion tells of each completion with its gather, scenario, attempt and try, also of one that fails.
func TestEvents_Completion(t *testing.T) {
	var mu sync.Mutex
	var got []art.CompletionEvent
	events := &art.Events{Completion: func(e art.CompletionEvent) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, e)
	}}
	broken := true
	backend := &arttest.Backend{Reply: func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		if broken {
			broken = false
			return art.Message{}, fs.ErrExist
		}
		return art.Assistant("hi"), nil
	}}
	m := registered(t, backend, &art.ModelOptions{Events: events})
	var gather uint64
	_, err := art.GatherGroups(t.Context(), numbers(2), func(ctx context.Context, _ int) (*art.Trajectory, error) {
		trajectory := art.NewTrajectory(art.User("?"))
		_, err := m.Chat(ctx, trajectory, nil)
		return trajectory, err
	}, &art.GatherOptions{Concurrency: 1, Retries: 1, Backoff: 1, GroupSize: 1,
		Events: &art.Events{GatherStart: func(e art.GatherStart) { gather = e.Gather }}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Complete(t.Context(), &art.History{Messages: []art.Message{art.User("?")}}, nil); err != nil {
		t.Fatal(err)
	}
	_, err = m.Stream(t.Context(), &art.History{Messages: []art.Message{art.User("!")}}, nil,
		func(art.Piece) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "events", len(got), 5)
	wantEqual(t, "first fails", errors.Is(got[0].Err, fs.ErrExist), true)
	for i, want := range [][2]int{{0, 0}, {0, 1}, {1, 0}} {
		wantEqual(t, "scenario and try", [2]int{got[i].Rollout.Scenario, got[i].Try}, want)
		wantEqual(t, "gather", got[i].Rollout.Gather, gather)
		wantEqual(t, "one of response and error", got[i].Response == nil, got[i].Err != nil)
	}
	wantEqual(t, "outside of a gather", got[3].Rollout == nil, true)
	wantEqual(t, "question", got[3].Request.Messages[0].Content, "?")
	wantEqual(t, "has a duration", got[3].Duration > 0, true)
	wantEqual(t, "of a stream", got[4].Response.Message.Content, "hi")
}
