package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/examples/arte/mailbox"
	"github.com/goart-dev/art/internal/interval"
)

// measures are what the table shows beside the reward: keys of metrics and what they are called.
var measures = [][2]string{
	{"right", "right answer"}, {"read", "right mail read"}, {"cited", "right id cited"}, {"format", "format"},
}

type rollout = func(context.Context, mailbox.Question) (*art.Trajectory, error)

func (e *experiment) held() []mailbox.Question { return e.box.Held[:min(*count, len(e.box.Held))] }

// compare prints the head of the table, and the agents that are not trained.
func (e *experiment) compare(ctx context.Context) {
	fmt.Printf("%3d held-out questions   reward", len(e.held()))
	for _, m := range measures {
		fmt.Printf("  %-22s", m[1])
	}
	fmt.Println()
	e.measure(ctx, "oracle", func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
		return e.answer(oracle(q))(ctx, q)
	})
	e.measure(ctx, "random calls", func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
		return e.answer(chance(art.Rand(ctx)))(ctx, q)
	})
	if *url != "" {
		other, err := prompted(ctx, *url, *name)
		check(err)
		e.measure(ctx, *name, e.answer(greedy(other)))
	}
}

// greedy is the policy of a model that always takes the likeliest token.
func greedy(model *art.Model) policy { return sampled(model, &art.ChatOptions{Temperature: new(0.0)}) }

// measured returns the mean reward at the step of the run: logged before the run was stopped, or else measured now.
func (e *experiment) measured(ctx context.Context) float64 {
	rows, err := e.backend.History(ctx, e.model)
	check(err)
	if mean, ok := art.Logged(rows, "val/reward", e.model.Step()); ok {
		fmt.Printf("model, step %-10d %7.3f  as measured before\n", e.model.Step(), mean)
		return mean
	}
	return e.evaluate(ctx)
}

// evaluate answers the held-out questions greedily and returns the mean reward.
func (e *experiment) evaluate(ctx context.Context) float64 {
	g := e.measure(ctx, fmt.Sprintf("model, step %d", e.model.Step()), e.answer(greedy(e.model)))
	check(e.model.Log(ctx, "val", []*art.TrajectoryGroup{g}, nil))
	return art.Metrics(g)["reward"]
}

// measure runs an agent once for each held-out question and prints a row of the table, with 95 % confidence intervals.
func (e *experiment) measure(ctx context.Context, name string, run rollout) *art.TrajectoryGroup {
	g, err := art.Gather(ctx, e.held(), run, &art.GatherOptions{Concurrency: 64, Seed: 1 << 32, Events: line})
	check(err)
	fmt.Printf("%-22s %7.3f", name, art.Metrics(g)["reward"])
	for _, m := range measures {
		n := 0
		for _, t := range g.Trajectories {
			n += int(t.Metrics[m[0]])
		}
		share, low, high := interval.Share(float64(n), float64(len(g.Trajectories)))
		fmt.Printf("  %5.1f%% [%5.1f, %5.1f]", 100*share, 100*low, 100*high)
	}
	fmt.Println()
	return g
}

func (e *experiment) draw(ctx context.Context) {
	folder, err := e.backend.Dir(e.model)
	check(err)
	rows, err := e.backend.History(ctx, e.model)
	check(err)
	series := []plot.Series{{Name: "right answer, training", Points: plot.History(rows, "train/right"), Smooth: true}}
	for _, m := range measures {
		series = append(series, plot.Series{Name: m[1] + ", held out", Points: plot.History(rows, "val/"+m[0])})
	}
	curves := filepath.Join(folder, "reward.svg")
	fmt.Println("curves:", curves)
	check(plot.Save(curves, &plot.Chart{
		Title: fmt.Sprintf("Mail agent, level %d", *level), Y: "questions", Percent: true, Series: series,
	}))
}
