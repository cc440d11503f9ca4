package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/internal/interval"
	"github.com/goart-dev/art/ruler"
)

// baseline measures a player that needs no model, and returns the share of its games that reached the target.
func baseline(ctx context.Context, name string, move func(*board, *rand.Rand) string) float64 {
	return measure(ctx, name, func(ctx context.Context) (*art.Trajectory, error) {
		t, rng := art.NewTrajectory(), art.Rand(ctx)
		first := newBoard(rows, columns, rng)
		return t, playGame(t, first, rng, func(b *board) (string, error) { return move(b, rng), nil })
	}).share
}

// measured returns the mean reward at the step of the run: logged before the run was stopped, or else measured now.
func measured(ctx context.Context, backend *local.Backend, model *art.Model) float64 {
	rows, err := backend.History(ctx, model)
	check(err)
	if mean, ok := art.Logged(rows, "val/reward", model.Step()); ok {
		fmt.Printf("model, step %-8d %6.3f, as measured before\n", model.Step(), mean)
		return mean
	}
	return evaluate(ctx, model)
}

// evaluate plays games with first boards of its own and returns the mean reward. Moves are sampled as in training: a
// player that always moves the same way on a board can be stuck there.
func evaluate(ctx context.Context, model *art.Model) float64 {
	r := measure(ctx, fmt.Sprintf("model, step %d", model.Step()), func(ctx context.Context) (*art.Trajectory, error) {
		return play(ctx, model, art.Rand(ctx))
	})
	check(model.Log(ctx, "val", []*art.TrajectoryGroup{r.group}, nil))
	return r.mean
}

type result struct {
	group *art.TrajectoryGroup
	mean  float64 // reward
	share float64 // of games that were won
}

// measure plays the games of a measurement and prints a row of the table, with 95 % confidence intervals.
func measure(ctx context.Context, name string, game func(context.Context) (*art.Trajectory, error)) result {
	g, err := art.Gather(ctx, make([]struct{}, *games), func(ctx context.Context, _ struct{}) (*art.Trajectory, error) {
		return game(ctx)
	}, &art.GatherOptions{Concurrency: 64, Seed: 1 << 32, Events: line})
	check(err)
	wins := 0
	for _, t := range g.Trajectories {
		wins += int(t.Metrics["win"])
	}
	mean, low, high := plot.RewardInterval([]*art.TrajectoryGroup{g})
	share, least, most := interval.Share(float64(wins), float64(len(g.Trajectories)))
	r := result{g, mean, share}
	fmt.Printf("%-20s %6.3f [%6.3f, %6.3f]  %5.1f%% [%5.1f, %5.1f]\n", name, mean, low, high,
		100*share, 100*least, 100*most)
	return r
}

// draw plots the share of games that reach the target, beside that of the players without a model.
func draw(ctx context.Context, backend *local.Backend, model *art.Model, lucky, greedy float64) {
	folder, err := backend.Dir(model)
	check(err)
	rows, err := backend.History(ctx, model)
	check(err)
	level := func(share float64) []plot.Point {
		return []plot.Point{{Value: share}, {Step: model.Step(), Value: share}}
	}
	curves := filepath.Join(folder, "reward.svg")
	check(plot.Save(curves, &plot.Chart{
		Title: "2048 on " + *size, Y: fmt.Sprintf("games that reach %d", *target), Percent: true,
		Series: []plot.Series{
			{Name: "training", Points: plot.History(rows, "train/win"), Smooth: true},
			{Name: "measurement", Points: plot.History(rows, "val/win")},
			{Name: "random player", Points: level(lucky)},
			{Name: "greedy player", Points: level(greedy)},
		},
	}))
	fmt.Println("curves:", curves)
}

// hook is the type of art.GatherOptions.After.
type hook = func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error)

// after returns what gives the trajectories of a group their rewards: nil for the reward of the game itself, and RULER
// with a rule in place of a language model, which costs nothing and knows the game.
func after(judge string) (hook, error) {
	switch judge {
	case "":
		return nil, nil
	case "ruler":
		return ruler.New(nil, &ruler.Options{Judges: []ruler.Judge{ruler.JudgeFunc(compare)}, Chunk: 64}).After, nil
	}
	return nil, fmt.Errorf("-judge is %q, want ruler or nothing", judge)
}

// compare rates games as somebody who looks at the last boards would: a game that was won, then one that came further,
// then one with more on the board; a word that is no move is worst.
func compare(_ context.Context, items []ruler.Item) ([]ruler.Rating, error) {
	var ratings []ruler.Rating
	for _, item := range items {
		m := item.Trajectory.Metrics
		score, text := 0.0, "it broke off with what is no move"
		if m["invalid_move"] == 0 {
			far := min(1, math.Log2(max(1, m["max_value"]))/math.Log2(float64(*target)))
			score = 0.1 + 0.6*far + 0.1*min(1, m["board_value"]/float64(2**target)) + 0.2*m["win"]
			text = fmt.Sprintf("the highest tile is %.0f, all tiles are %.0f", m["max_value"], m["board_value"])
		}
		ratings = append(ratings, ruler.Rating{ID: item.ID, Explanation: text, Score: score})
	}
	return ratings, nil
}
