// Command tictactoe trains a language model to play tic-tac-toe, in this process and on this CPU.
//
//	GOEXPERIMENT=simd go run ./examples/tictactoe
//
// A game is a chat: the user's message is the opponent's cell, the reply is the agent's. The opponent moves at random.
// The whole game is one trajectory, and its reward is how it ended.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
)

// Rewards. A draw is worth nearly a win: what counts is not to lose.
const win, draw, loss, illegal = 1.0, 0.8, 0.0, -0.5

var (
	seed   = flag.Uint64("seed", 1, "seed of the run")
	steps  = flag.Int("steps", 48, "training steps")
	games  = flag.Int("games", 128, "games of a step")
	group  = flag.Int("group", 32, "games of a group")
	rate   = flag.Float64("rate", 1e-3, "learning rate")
	epochs = flag.Int("epochs", 3, "passes over the games of a step")
	minis  = flag.Int("minibatches", 2, "optimizer steps of a pass")
	evals  = flag.Int("evals", 1000, "games of an evaluation")
	dir    = flag.String("dir", ".art", "where runs are stored")
	short  = flag.Bool("short", false, "few steps; fail unless the reward rises")
)

func main() {
	flag.Parse()
	if *short {
		*steps, *evals = 6, 200
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func open(ctx context.Context) (*local.Backend, *art.Model, error) {
	backend, err := local.Open(ctx, &local.Options{Dir: *dir, Slots: 64, Context: 64})
	if err != nil {
		return nil, nil, err
	}
	model := art.NewModel(fmt.Sprintf("player-%d", *seed), &art.ModelOptions{
		Project: "tictactoe", Base: "tiny", Seed: *seed, LoRA: art.LoRA{Rank: 32}, Chat: art.ChatOptions{MaxTokens: new(4)},
	})
	return backend, model, model.Register(ctx, backend)
}

func run(ctx context.Context) error {
	start := time.Now()
	backend, model, err := open(ctx)
	if err != nil {
		return err
	}
	defer backend.Close()
	first, last := 0.0, 0.0
	for step := model.Step(); ; step++ {
		if step == 0 || step >= *steps {
			if err := evaluate(ctx, model); err != nil {
				return err
			}
		}
		if step >= *steps {
			break
		}
		groups, err := art.GatherGroups(ctx, sides(*games / *group), func(ctx context.Context, first bool) (*art.Trajectory, error) {
			rng := art.Rand(ctx)
			return play(ctx, model, first, func(free []int) int { return rng.IntN(len(free)) }, nil)
		}, &art.GatherOptions{GroupSize: *group, Concurrency: 64, Seed: uint64(step)})
		if err != nil {
			return err
		}
		result, err := model.Train(ctx, groups, &art.TrainConfig{
			Loss: art.LossPPO, LearningRate: *rate, Epochs: *epochs, MiniBatches: *minis, MaxGradNorm: 1, WeightDecay: new(0.0),
		})
		if err != nil {
			return err
		}
		if err := model.Log(ctx, "train", groups, result.Metrics); err != nil {
			return err
		}
		if last = mean(groups, "not_lost"); step == 0 {
			first = last
		}
		fmt.Printf("step %3d  not lost %.2f  entropy %.3f  %v\n", model.Step(), last, result.Metrics["loss/entropy"], time.Since(start).Round(time.Second))
	}
	if *short && last <= first {
		return errors.New("the reward did not rise")
	}
	return plotRun(ctx, backend, model)
}

// sides alternates who begins: true is the agent.
func sides(n int) []bool {
	list := make([]bool, n)
	for i := range list {
		list[i] = i%2 == 0
	}
	return list
}

// play is the agent: an ordinary loop around a chat. opponent chooses among the free cells.
func play(ctx context.Context, model *art.Model, first bool, opponent func(free []int) int, opts *art.ChatOptions) (*art.Trajectory, error) {
	t := art.NewTrajectory(art.System("Play tic-tac-toe."))
	var b board
	message, legal, moves := "Begin.", true, 0.0
	for turn := 0; legal && !b.over(); turn++ {
		if turn > 0 || !first {
			free := b.free()
			cell := free[opponent(free)]
			b[cell] = 'O'
			message = strconv.Itoa(cell + 1)
		}
		t.Add(art.User(message))
		if b.over() {
			break
		}
		moves++
		reply, err := model.Chat(ctx, t, opts)
		if err != nil {
			return nil, err
		}
		legal = b.play(reply.Content)
	}
	t.Metrics = map[string]float64{"not_lost": 0, "moves": moves, "legal": moves}
	switch {
	case !legal:
		t.Reward, t.Metrics["legal"] = illegal, moves-1
	case b.won('O'):
		t.Reward = loss
	case b.won('X'):
		t.Reward, t.Metrics["not_lost"] = win, 1
	default:
		t.Reward, t.Metrics["not_lost"] = draw, 1
	}
	return t, nil
}

// evaluate plays greedily, half of the games on each side.
func evaluate(ctx context.Context, model *art.Model) error {
	g, err := art.Gather(ctx, sides(*evals), func(ctx context.Context, first bool) (*art.Trajectory, error) {
		rng := art.Rand(ctx)
		return play(ctx, model, first, func(free []int) int { return rng.IntN(len(free)) }, &art.ChatOptions{Temperature: new(0.0)})
	}, &art.GatherOptions{Concurrency: 64, Seed: 1})
	if err != nil {
		return err
	}
	groups := []*art.TrajectoryGroup{g}
	fmt.Printf("greedy at step %d: %.1f%% of %d games not lost, %.2f%% of moves legal\n",
		model.Step(), 100*mean(groups, "not_lost"), *evals, 100*mean(groups, "legal")/mean(groups, "moves"))
	return model.Log(ctx, "val", groups, nil)
}

// mean averages a metric over all trajectories.
func mean(groups []*art.TrajectoryGroup, metric string) float64 {
	sum, n := 0.0, 0
	for _, g := range groups {
		for _, t := range g.Trajectories {
			sum, n = sum+t.Metrics[metric], n+1
		}
	}
	return sum / float64(n)
}
