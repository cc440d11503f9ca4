package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/examples/arte/mailbox"
	"github.com/goart-dev/art/examples/internal/interval"
)

// compare prints the head of the table, and the agents that are not trained.
func compare(ctx context.Context, store *mailbox.Store, held []mailbox.Question) error {
	fmt.Printf("%d held-out questions  reward  right answer           right mail read        right id cited         format\n", len(held))
	_, err := measure(ctx, "oracle", held, func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
		return answer(ctx, oracle(q), store, *level, q)
	})
	if err != nil {
		return err
	}
	_, err = measure(ctx, "random calls", held, func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
		return answer(ctx, chance(art.Rand(ctx)), store, *level, q)
	})
	if err != nil || *url == "" {
		return err
	}
	other, err := prompted(*url, *name)
	if err != nil {
		return err
	}
	_, err = measure(ctx, *name, held, func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
		return answer(ctx, sampled(other, &art.ChatOptions{Temperature: new(0.0)}), store, *level, q)
	})
	return err
}

// measured returns the mean reward at the step of the run: as it was logged before the run was stopped, or else measured now.
func measured(ctx context.Context, backend *local.Backend, model *art.Model, store *mailbox.Store, held []mailbox.Question) float64 {
	rows, err := backend.History(ctx, model)
	check(err)
	if mean, ok := art.Logged(rows, "val/reward", model.Step()); ok {
		fmt.Printf("model, step %-9d %7.3f  as measured before\n", model.Step(), mean)
		return mean
	}
	return evaluate(ctx, model, store, held)
}

// evaluate answers the held-out questions greedily and returns the mean reward.
func evaluate(ctx context.Context, model *art.Model, store *mailbox.Store, held []mailbox.Question) float64 {
	g, err := measure(ctx, fmt.Sprintf("model, step %d", model.Step()), held, func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
		return answer(ctx, sampled(model, &art.ChatOptions{Temperature: new(0.0)}), store, *level, q)
	})
	check(err)
	check(model.Log(ctx, "val", []*art.TrajectoryGroup{g}, nil))
	return art.Metrics(g)["reward"]
}

// measure runs an agent once for each question and prints a row of the table, with 95 % confidence intervals.
func measure(ctx context.Context, name string, held []mailbox.Question, agent func(context.Context, mailbox.Question) (*art.Trajectory, error)) (*art.TrajectoryGroup, error) {
	g, err := art.Gather(ctx, held, agent, &art.GatherOptions{Concurrency: 64, Seed: 1 << 32})
	if err != nil {
		return nil, err
	}
	fmt.Printf("%-21s %7.3f", name, art.Metrics(g)["reward"])
	for _, key := range []string{"right", "read", "cited", "format"} {
		n := 0
		for _, t := range g.Trajectories {
			n += int(t.Metrics[key])
		}
		fmt.Printf("  %v", interval.Wilson(n, len(g.Trajectories)))
	}
	fmt.Println()
	return g, nil
}

// draw plots what was right on held-out questions.
func draw(ctx context.Context, backend *local.Backend, model *art.Model) error {
	folder, err := backend.Dir(model)
	if err != nil {
		return err
	}
	rows, err := backend.History(ctx, model)
	if err != nil {
		return err
	}
	curves := filepath.Join(folder, "reward.svg")
	fmt.Println("curves:", curves)
	return plot.Save(curves, &plot.Chart{Title: fmt.Sprintf("Mail agent, level %d", *level), Y: "questions", Percent: true, Series: []plot.Series{
		{Name: "right answer, training", Points: plot.History(rows, "train/right"), Smooth: true},
		{Name: "right answer, held out", Points: plot.History(rows, "val/right")},
		{Name: "right mail read, held out", Points: plot.History(rows, "val/read")},
		{Name: "right id cited, held out", Points: plot.History(rows, "val/cited")},
	}})
}
