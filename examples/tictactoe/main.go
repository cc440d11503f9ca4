// Command tictactoe trains a language model to play tic-tac-toe, in this process and on this CPU.
//
//	GOEXPERIMENT=simd go run ./examples/tictactoe
//
// The agent plays whole games as a chat: the user's message is the opponent's cell, the reply is the agent's. Its
// opponent moves at random. A game is one trajectory, and its reward is what came out at the end.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
)

// Rewards. A draw is worth nearly a win: what matters is not to lose.
const (
	win, draw, loss, illegal = 1.0, 0.8, 0.0, -0.5
)

var (
	seed   = flag.Uint64("seed", 1, "seed of the run")
	steps  = flag.Int("steps", 48, "training steps")
	games  = flag.Int("games", 128, "games of a step")
	group  = flag.Int("group", 32, "games that are compared with one another")
	rate   = flag.Float64("rate", 1e-3, "learning rate")
	epochs = flag.Int("epochs", 3, "passes over the games of a step")
	minis  = flag.Int("minibatches", 2, "optimizer steps of an epoch")
	evals  = flag.Int("evals", 1000, "games of an evaluation")
	dir    = flag.String("dir", ".art", "where runs are stored")
	short  = flag.Bool("short", false, "a minute only: fail unless the reward rises")
)

// scenario is a game to play.
type scenario struct {
	first bool                  // the agent moves first
	pick  func(n, turn int) int // the opponent's choice among n free cells; nil is random
}

func main() {
	flag.Parse()
	if *short {
		*steps, *evals = 6, 200
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	start := time.Now()
	backend, err := local.Open(ctx, &local.Options{Dir: *dir, Slots: 64, Context: 64})
	if err != nil {
		return err
	}
	defer backend.Close()

	model := art.NewModel(fmt.Sprintf("player-%d", *seed), &art.ModelOptions{
		Project: "tictactoe", Base: "tiny", Seed: *seed, LoRA: art.LoRA{Rank: 32}, Chat: art.ChatOptions{MaxTokens: new(4)},
	})
	if err := model.Register(ctx, backend); err != nil {
		return err
	}
	if err := evaluate(ctx, model); err != nil {
		return err
	}
	for step := model.Step(); step < *steps; step++ {
		groups, err := art.GatherGroups(ctx, scenarios(*games / *group), func(ctx context.Context, s scenario) (*art.Trajectory, error) {
			return play(ctx, model, s, nil)
		}, &art.GatherOptions{GroupSize: *group, Concurrency: 64})
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
		fmt.Printf("step %3d  reward %.3f  not lost %.2f  entropy %.3f  clipped %.3f  gap %.1g  %v\n", model.Step(), mean(groups, ""), mean(groups, "not_lost"),
			result.Metrics["loss/entropy"], result.Metrics["ratio/clipped_frac"], result.Metrics["train/logprob_gap_max"], time.Since(start).Round(time.Second))
	}
	if err := evaluate(ctx, model); err != nil {
		return err
	}
	return nil
}

// scenarios alternates who begins.
func scenarios(n int) []scenario {
	list := make([]scenario, n)
	for i := range list {
		list[i].first = i%2 == 0
	}
	return list
}

// play is the agent: an ordinary loop around a chat.
func play(ctx context.Context, model *art.Model, s scenario, opts *art.ChatOptions) (*art.Trajectory, error) {
	rng := art.Rand(ctx)
	t := art.NewTrajectory(art.System("Play tic-tac-toe."))
	var b board
	for turn := 0; !b.over(); turn++ {
		message := "Begin."
		if turn > 0 || !s.first {
			free := b.free()
			choice := 0
			if s.pick != nil {
				choice = s.pick(len(free), turn)
			} else {
				choice = rng.IntN(len(free))
			}
			b[free[choice]] = 'O'
			message = strconv.Itoa(free[choice] + 1)
			if b.over() {
				break
			}
		}
		t.Add(art.User(message))
		reply, err := model.Chat(ctx, t, opts)
		if err != nil {
			return nil, err
		}
		if !b.play(reply.Content) {
			return finish(t, illegal, turn), nil
		}
	}
	switch {
	case b.won('X'):
		return finish(t, win, -1), nil
	case b.won('O'):
		return finish(t, loss, -1), nil
	}
	return finish(t, draw, -1), nil
}

func finish(t *art.Trajectory, reward float64, illegalTurn int) *art.Trajectory {
	t.Reward = reward
	moves := float64(len(t.Samples()))
	t.Metrics = map[string]float64{"not_lost": 0, "moves": moves, "legal": moves}
	if reward == win || reward == draw {
		t.Metrics["not_lost"] = 1
	}
	if illegalTurn >= 0 {
		t.Metrics["legal"] = moves - 1
	}
	return t
}

// evaluate plays greedily, half of the games on each side.
func evaluate(ctx context.Context, model *art.Model) error {
	g, err := art.Gather(ctx, scenarios(*evals), func(ctx context.Context, s scenario) (*art.Trajectory, error) {
		return play(ctx, model, s, &art.ChatOptions{Temperature: new(0.0)})
	}, &art.GatherOptions{Concurrency: 64, Seed: 1})
	if err != nil {
		return err
	}
	groups := []*art.TrajectoryGroup{g}
	fmt.Printf("greedy at step %d: %.1f%% not lost, %.2f%% of moves legal (%d games)\n",
		model.Step(), 100*mean(groups, "not_lost"), 100*mean(groups, "legal")/mean(groups, "moves"), *evals)
	return model.Log(ctx, "val", groups, nil)
}

// mean averages a metric over trajectories; "" is the reward.
func mean(groups []*art.TrajectoryGroup, metric string) float64 {
	sum, n := 0.0, 0
	for _, g := range groups {
		for _, t := range g.Trajectories {
			if v := t.Reward; metric == "" {
				sum += v
			} else {
				sum += t.Metrics[metric]
			}
			n++
		}
	}
	return sum / float64(max(n, 1))
}
