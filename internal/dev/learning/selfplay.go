package learning

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/goart-dev/art"
)

// SelfPlay learns from games of the policy against itself and against its own past: without these self-play runs in
// circles. The first self, which plays almost at random, is the opponent in three of five games, so that the policy
// does not forget how to win against weak ones.
func SelfPlay() *Task {
	return &Task{
		Name: "self-play", What: "play tic-tac-toe against itself, and against past selves", Steps: 200, Every: 10,
		Aim: NeverFalls(10), Measure: "exact expected score of the greedy policy against a random opponent, percent",
		Context: 96, MaxTokens: 4, Rank: 32, Start: func() Agent { return &selfPlay{} },
	}
}

// selfPlay keeps past selves. Those of an interrupted run are lost: it begins again with the current one.
type selfPlay struct{ past []*art.Pin }

// keepEvery is the number of steps between two past selves, of which the first and the newest are kept, maxPast in all.
const keepEvery, maxPast = 10, 8

// game is who plays: the current policy on both sides, or on one against a past self.
type game int

const (
	itself game = iota
	pastSecond
	pastFirst
)

// Groups implements Agent.
func (a *selfPlay) Groups(ctx context.Context, m *art.Model, step int) ([]*art.TrajectoryGroup, error) {
	if len(a.past) == 0 || step%keepEvery == 0 {
		pin, err := m.Pin()
		if err != nil {
			return nil, err
		}
		a.past = append(a.past, pin)
		if len(a.past) > maxPast {
			a.past = slices.Delete(a.past, 1, 2)
		}
	}
	sides, err := art.GatherPlayers(ctx, []game{itself, pastSecond, pastFirst, pastSecond, pastFirst}, 2,
		func(ctx context.Context, g game) ([]*art.Trajectory, error) { return a.play(ctx, m, g) },
		&art.GatherOptions{GroupSize: 64, Concurrency: 64, Seed: uint64(step)})
	if err != nil {
		return nil, err
	}
	return append(sides[0], sides[1]...), nil
}

// Config implements Agent.
func (a *selfPlay) Config(step int) *art.TrainConfig {
	return gameConfig(5e-4 * min(1, 50/float64(step+1)))
}

// Measure implements Agent.
func (a *selfPlay) Measure(ctx context.Context, m *art.Model) (map[string]float64, error) {
	metrics, err := measureLines(ctx, m)
	if err == nil {
		metrics["value"] = metrics["score"]
	}
	return metrics, err
}

// opponent is a past self: the first one three times out of four, or else any of those that are kept.
func (a *selfPlay) opponent(random *rand.Rand) *art.Pin {
	if random.Float64() < 0.75 {
		return a.past[0]
	}
	return a.past[random.IntN(len(a.past))]
}

// play plays a game and returns the trajectories of the current policy.
func (a *selfPlay) play(ctx context.Context, m *art.Model, g game) ([]*art.Trajectory, error) {
	past := a.opponent(art.Rand(ctx))
	sides := [2]*player{{trajectory: begin(true)}, {trajectory: begin(false)}}
	for turn := 0; !sides[0].board.over(); turn++ {
		own, other := sides[turn%2], sides[1-turn%2]
		mover := ctx
		if g == pastFirst && turn%2 == 0 || g == pastSecond && turn%2 == 1 {
			mover = past.Context(ctx)
		}
		cell, err := own.move(mover, m)
		if err != nil {
			return nil, err
		}
		if own.broken {
			break // the other side neither won nor lost
		}
		other.sees(cell)
	}
	out := []*art.Trajectory{sides[0].reward(), sides[1].reward()}
	switch g {
	case pastFirst:
		out[0] = nil
	case pastSecond:
		out[1] = nil
	}
	return out, nil
}
