package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/openai"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/examples/arte/mailbox"
	"github.com/goart-dev/art/internal/interval"
	"github.com/goart-dev/art/ruler"
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

// hook is the type of art.GatherOptions.After.
type hook = func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error)

// after returns what gives the trajectories of a group their rewards: nil for the reward bands; RULER with a rule in
// place of a language model, which costs nothing and knows the right answer; or RULER with a model behind a URL.
func after(ctx context.Context, judge string) (hook, error) {
	name, url, hosted := strings.Cut(judge, "@")
	switch {
	case judge == "":
		return nil, nil
	case judge == "ruler":
		return ruler.New(nil, &ruler.Options{Judges: []ruler.Judge{ruler.JudgeFunc(compare)}, Chunk: 64}).After, nil
	case hosted:
		m, err := prompted(ctx, url, name)
		return ruler.New(m, &ruler.Options{OnFailure: ruler.Drop, Cache: filepath.Join(*dir, "judge")}).After, err
	}
	return nil, fmt.Errorf("-judge is %q, want ruler, MODEL@URL or nothing", judge)
}

// compare rates runs as somebody who knows the answer would: right before wrong, fewer turns before more, and of those
// that are not right the one that came closer.
func compare(_ context.Context, items []ruler.Item) ([]ruler.Rating, error) {
	var ratings []ruler.Rating
	for _, item := range items {
		m := item.Trajectory.Metrics
		score := 0.1*m["format"] + 0.1*m["found"] + 0.15*m["read"] + 0.15*m["cited"]
		text := "the answer is not right"
		if m["right"] == 1 {
			score, text = 0.8+0.1*m["cited"]+0.1*(1-m["turns"]/maxTurns), "the answer is right"
		}
		ratings = append(ratings, ruler.Rating{ID: item.ID, Explanation: text, Score: min(1, score)})
	}
	return ratings, nil
}

// prompted returns a model behind an OpenAI-compatible URL, which runs the same rollouts as the trained one. Its
// backend stays open until the program ends.
func prompted(ctx context.Context, url, name string) (*art.Model, error) {
	backend, err := openai.Open(ctx, &openai.Options{BaseURL: url, Dir: *dir})
	if err != nil {
		return nil, err
	}
	run := strings.NewReplacer("/", "-", ":", "-", "@", "-").Replace(name)
	m := art.NewModel("hosted-"+run, &art.ModelOptions{Project: "arte", Base: name, Frozen: true,
		Chat: art.ChatOptions{MaxTokens: new(512)}})
	return m, m.Register(ctx, backend)
}
