package main

import (
	"context"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// staff answers as supervisor and workers of a given skill do.
func staff(t *testing.T, train string, supervisor, worker func(text string) string) (*team, *arttest.Backend) {
	t.Helper()
	usual := *who
	*who = train
	t.Cleanup(func() { *who = usual })
	b := &arttest.Backend{Reply: func(_ context.Context, m *art.Model, r *art.ChatRequest) (art.Message, error) {
		text := strings.TrimSuffix(r.Messages[1].Content, " yes or no")
		if strings.HasPrefix(m.Name(), "supervisor") {
			return art.Assistant(supervisor(text)), nil
		}
		return art.Assistant(worker(text)), nil
	}}
	team, err := newTeam(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return team, b
}

func right(text string) string {
	for _, q := range questions() {
		if q.text == text {
			return q.answer
		}
	}
	return ""
}

func chosen(text string) string {
	if strings.HasPrefix(text, "Say") {
		return "no"
	}
	return "yes"
}

// Only a team whose members are all good is right.
func TestAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		supervisor, worker func(string) string
		right, known       float64
	}{
		"good":           {chosen, right, 1, 1},
		"bad worker":     {chosen, func(string) string { return "?" }, 0, 1},
		"bad supervisor": {func(string) string { return "me" }, right, 0, 0},
	} {
		team, _ := staff(t, "both", c.supervisor, c.worker)
		got, err := team.evaluate(t.Context())
		if err != nil || got != c.right {
			t.Errorf("%s: %v right, %v", name, got, err)
		}
	}
}

// Each model trains on what it wrote itself, and only those that shall learn make steps.
func TestLearn(t *testing.T) {
	for train, want := range map[string][2]int{"both": {1, 1}, "supervisor": {1, 0}, "workers": {0, 1}} {
		team, b := staff(t, train, chosen, right)
		b.Learn = func(_ context.Context, m *art.Model, groups []*art.TrajectoryGroup, _ *art.TrainConfig) error {
			for _, g := range groups {
				for _, x := range g.Trajectories {
					isSupervisor := x.Messages[0].Content == delegate
					if isSupervisor != (m == team.supervisor) || len(x.Samples()) != 1 {
						t.Errorf("%s: %s trains on %q", train, m.Name(), x.Messages[0].Content)
					}
				}
			}
			return nil
		}
		*steps = 1
		if _, err := team.train(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if got := [2]int{team.supervisor.Step(), team.workers.Step()}; got != want {
			t.Errorf("%s: steps %v, want %v", train, got, want)
		}
	}
	*who = "nobody"
	if _, err := newTeam(t.Context(), &arttest.Backend{}); err == nil {
		t.Error("-train nobody is no error")
	}
}

// Answers of different workers are not compared.
func TestParts(t *testing.T) {
	p := &parts{}
	g := &art.TrajectoryGroup{}
	for _, name := range []string{"calc", "copy", "calc", ""} {
		s := art.NewTrajectory()
		g.Trajectories = append(g.Trajectories, s)
		if name != "" {
			w := art.NewTrajectory()
			w.Metadata["worker"] = name
			p.Store(s, w)
		}
	}
	groups := p.workers([]*art.TrajectoryGroup{g})
	if len(groups) != 2 || len(groups[0].Trajectories) != 2 || len(groups[1].Trajectories) != 1 {
		t.Errorf("%d groups", len(groups))
	}
	if groups := p.workers(nil); len(groups) != 1 {
		t.Errorf("nobody was asked: %d groups", len(groups))
	}
}

// Two steps with the built-in model.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("trains")
	}
	*dir, *steps, *batch, *group, *who = t.TempDir(), 2, 4, 4, "both"
	for range 2 {
		if err := run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
