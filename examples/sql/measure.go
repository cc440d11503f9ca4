package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/sql/world"
	"github.com/goart-dev/art/internal/interval"
)

// measures are what the table shows beside the reward: keys of metrics and what they are called.
var measures = [][2]string{{"right", "right answer"}, {"near", "but for conventions"}, {"ran", "a query ran"}}

// rollout answers a question.
type rollout = func(context.Context, *world.Question) (*art.Trajectory, error)

// held returns the questions of a measurement.
func (e *experiment) held() []*world.Question {
	var list []*world.Question
	for i := range e.world.Held[:min(*count, len(e.world.Held))] {
		list = append(list, &e.world.Held[i])
	}
	return list
}

// compare prints the head of the table, and the agents that are not trained. What the untrained model does with the
// good prompt is stored with the run, and measured once.
func (e *experiment) compare(ctx context.Context) error {
	fmt.Printf("%3d held-out questions   reward", len(e.held()))
	for _, m := range measures {
		fmt.Printf("  %-22s", m[1])
	}
	fmt.Println()
	if _, err := e.measure(ctx, "oracle", func(ctx context.Context, q *world.Question) (*art.Trajectory, error) {
		return answer(ctx, oracle(q), begin(), q)
	}); err != nil {
		return err
	}
	if !*baseline {
		return nil
	}
	g, err := e.stored("baseline", 0)
	if err != nil {
		return err
	}
	if g != nil {
		e.row("base, good prompt", g)
		return nil
	}
	model := art.NewModel("prompted", &art.ModelOptions{Project: project, Base: *base, Frozen: true, Chat: chat,
		ToolFormat: *format})
	if err := model.Register(ctx, e.backend); err != nil {
		return err
	}
	if g, err = e.measure(ctx, "base, good prompt", by(greedy(model), prompted())); err != nil {
		return err
	}
	return e.model.Log(ctx, "baseline", []*art.TrajectoryGroup{g}, nil)
}

// by is the rollout by a policy.
func by(next policy, begin []art.Message) rollout {
	return func(ctx context.Context, q *world.Question) (*art.Trajectory, error) {
		return answer(ctx, next, begin, q)
	}
}

// due reports whether the step of the run is one of those that are measured.
func (e *experiment) due() bool {
	step := e.model.Step()
	return step%max(1, *every) == 0 || step == *steps || step == 1 && *demos > 0
}

// measured returns the last mean reward that was logged before the run was stopped, or measures where one is missing.
func (e *experiment) measured(ctx context.Context) (float64, error) {
	rows, err := e.backend.History(ctx, e.model)
	if err != nil {
		return 0, err
	}
	for step := e.model.Step(); step >= 0; step-- {
		if mean, ok := art.Logged(rows, "val/reward", step); ok {
			fmt.Printf("model, step %-10d %7.3f  as measured before\n", step, mean)
			return mean, e.gains()
		}
		if step == e.model.Step() && e.due() {
			break
		}
	}
	return e.evaluate(ctx)
}

// evaluate answers the held-out questions greedily, and returns the mean reward.
func (e *experiment) evaluate(ctx context.Context) (float64, error) {
	g, err := e.measure(ctx, fmt.Sprintf("model, step %d", e.model.Step()), by(greedy(e.model), begin()))
	if err != nil {
		return 0, err
	}
	if err := e.model.Log(ctx, "val", []*art.TrajectoryGroup{g}, nil); err != nil {
		return 0, err
	}
	return art.Metrics(g)["reward"], e.gains()
}

// measure runs an agent once for each held-out question and prints a row of the table.
func (e *experiment) measure(ctx context.Context, name string, run rollout) (*art.TrajectoryGroup, error) {
	g, err := art.Gather(ctx, e.held(), run, &art.GatherOptions{Concurrency: concurrency, Seed: 1 << 32, Events: line})
	if err != nil {
		return nil, err
	}
	e.row(name, g)
	return g, nil
}

// row prints a row of the table, with 95 % confidence intervals.
func (e *experiment) row(name string, g *art.TrajectoryGroup) {
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
}

// stored returns what was logged of a split at a step, nil if nothing was.
func (e *experiment) stored(split string, step int) (*art.TrajectoryGroup, error) {
	folder, err := e.backend.Dir(e.model)
	if err != nil {
		return nil, err
	}
	run, err := rundir.Open(folder)
	if err != nil {
		return nil, err
	}
	groups, err := run.ReadTrajectories(split, step)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(groups) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return groups[0], nil
}

// gains prints how many more held-out questions are answered right at the newest step than before training, and than by
// the untrained model with the good prompt, with intervals for pairs.
func (e *experiment) gains() error {
	if e.model.Step() == 0 {
		return nil
	}
	now, err := e.stored("val", e.model.Step())
	if err != nil || now == nil {
		return err
	}
	for _, other := range [][2]string{{"val", "step 0"}, {"baseline", "the good prompt"}} {
		before, err := e.stored(other[0], 0)
		if err != nil {
			return err
		}
		if before != nil {
			fmt.Printf("  beside %s: %v\n", other[1], gain(before, now))
		}
	}
	return nil
}

// gain pairs trajectories by their question.
func gain(before, now *art.TrajectoryGroup) (g agents.Gain) {
	right := map[string]bool{}
	for _, t := range before.Trajectories {
		right[t.Metadata["question"].(string)] = t.Metrics["right"] == 1
	}
	for _, t := range now.Trajectories {
		if old, ok := right[t.Metadata["question"].(string)]; ok {
			g.Add(old, t.Metrics["right"] == 1)
		}
	}
	return g
}

// draw plots what was right, and what ran, on held-out questions.
func (e *experiment) draw(ctx context.Context) error {
	folder, err := e.backend.Dir(e.model)
	if err != nil {
		return err
	}
	rows, err := e.backend.History(ctx, e.model)
	if err != nil {
		return err
	}
	series := []plot.Series{{Name: "right answer, training", Points: plot.History(rows, "train/right"), Smooth: true}}
	for _, m := range measures {
		series = append(series, plot.Series{Name: m[1] + ", held out", Points: plot.History(rows, "val/"+m[0])})
	}
	if *baseline {
		if share, ok := art.Logged(rows, "baseline/right", 0); ok {
			series = append(series, plot.Series{Name: "right answer, good prompt, held out",
				Points: []plot.Point{{Value: share}, {Step: e.model.Step(), Value: share}}})
		}
	}
	curves := filepath.Join(folder, "reward.svg")
	fmt.Println("curves:", curves)
	return plot.Save(curves, &plot.Chart{
		Title: fmt.Sprintf("Questions in SQL, level %d", *level), Y: "questions", Percent: true, Series: series,
	})
}
