package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/cmd/art/project"
	"github.com/goart-dev/art/examples/arithmetic/sums"
	"github.com/goart-dev/art/examples/tictactoe/game"
)

// task is what a model can be trained for by name: scenarios with a reward, and settings with which the built-in model
// learns it in a minute or a few.
type task struct {
	summary                        string // one line
	train, val                     []try  // scenarios to train on and to evaluate with
	steps, batch, group, maxTokens int
}

// tasks by name.
var tasks = newTasks()

func newTasks() map[string]task {
	known, unseen := sums.Split()
	sides, measured := []bool{true, false, true, false}, slices.Repeat([]bool{true, false}, 50)
	return map[string]task{
		"arithmetic": {
			"sums of two digits; a quarter is held out",
			tries(known, "right", sums.Ask), tries(unseen, "right", sums.Ask), 60, 16, 8, 8,
		},
		"tictactoe": {
			"a game against an opponent that wins where it can; not to lose is to solve it",
			tries(sides, "not_lost", playing(game.Sharp)), tries(measured, "not_lost", playing(game.Random)), 200, 4, 32, 4,
		},
		"words": {
			"the task of art init: the best of three words, in a few steps",
			tries(project.Questions, "right", project.Answer), tries(project.Questions, "right", project.Answer), 10, 4, 16, 8,
		},
	}
}

// playing returns the rollout of a game against an opponent.
func playing(
	opponent func(intn func(int) int) game.Opponent,
) func(context.Context, *art.Model, bool, *art.ChatOptions) (*art.Trajectory, error) {
	return func(ctx context.Context, m *art.Model, first bool, opts *art.ChatOptions) (*art.Trajectory, error) {
		return game.Play(ctx, m, first, opponent(art.Rand(ctx).IntN), opts)
	}
}

// try is a scenario with its rollout.
type try struct {
	name string
	roll func(context.Context, *art.Model, *art.ChatOptions) (*art.Trajectory, error)
}

// String is the scenario, for messages.
func (t try) String() string { return t.name }

// tries binds scenarios to a rollout. solved is its metric that is 1 for a scenario that is solved, and 0 otherwise.
func tries[S any](
	scenarios []S, solved string,
	roll func(context.Context, *art.Model, S, *art.ChatOptions) (*art.Trajectory, error),
) []try {
	list := make([]try, len(scenarios))
	for i, s := range scenarios {
		list[i] = try{fmt.Sprint(s), func(ctx context.Context, m *art.Model, o *art.ChatOptions) (*art.Trajectory, error) {
			t, err := roll(ctx, m, s, o)
			if err == nil {
				t.Metrics["solved"] = t.Metrics[solved]
			}
			return t, err
		}}
	}
	return list
}
