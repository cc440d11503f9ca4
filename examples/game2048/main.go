// Command game2048 trains a language model to play 2048 on a small board, in this process: go run ./examples/game2048
//
// A game is one trajectory. Each move is a chat of its own, because the board says all that a move depends on: the
// model finds every board at the same position of its context, and the length of a game is not limited by the context.
// A move that changes nothing is legal and adds a tile like any other; the game ends when the target is reached or the
// board is full.
//
// The first step is supervised, on games of the random player: it teaches the four words and no skill. All others are
// reinforcement learning. Stop it at any time: run again, and it continues at the last step. Other games are
// -board 3x3 -target 32 and -board 4x4 -target 64, and other models -model FOLDER, FILE.gguf or ORG/NAME.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/grpo/credit"
)

var (
	base    = flag.String("model", "tiny", "base model: a folder, a GGUF file, ORG/NAME of the hub, or tiny")
	seed    = flag.Uint64("seed", 1, "seed of the run")
	steps   = flag.Int("steps", 100, "training steps, the first of which is supervised")
	groups  = flag.Int("groups", 8, "first boards of a step")
	group   = flag.Int("group", 16, "games of a group, which begin with the same board")
	games   = flag.Int("measure", 1000, "games of a measurement")
	rate    = flag.Float64("rate", 5e-4, "learning rate; from step 50 on it falls as 1/step")
	size    = flag.String("board", "2x3", "rows x columns")
	target  = flag.Int("target", 16, "tile that wins, a power of 2")
	judge   = flag.String("judge", "", "ruler: train by the scores of a judge alone; else by the reward of the game")
	dir     = flag.String("dir", ".art", "where runs are stored")
	short   = flag.Bool("short", false, "10 steps; fail unless the reward is higher after them")
	rows    int
	columns int
)

type player func(*board) (string, error)

// line shows on a terminal how far the program is.
var line = terminal.New(&terminal.Options{Quiet: true})

func main() {
	flag.Parse()
	ctx := context.Background()
	check(validate())
	rewards, err := after(*judge)
	check(err)
	if *short {
		*steps = 10
	}
	fmt.Printf("loading %s, then measuring it\n", *base)
	backend, model, err := open(ctx)
	check(err)
	defer backend.Close()
	fmt.Printf("%5d games of each   reward                 reached %d\n", *games, *target)
	lucky, greedy := baseline(ctx, "random player", randomMove), baseline(ctx, "greedy player", greedyMove)
	before, began := measured(ctx, backend, model), model.Step()
	if began >= *steps {
		fmt.Printf("The run is finished: it is at step %d of %d. Train it further with -steps %d and without -short, "+
			"or begin another with -seed or -dir.\n", began, *steps, began+50)
	}
	if began == 0 && *steps > 0 {
		check(teachMoves(ctx, model, 400))
		before = evaluate(ctx, model)
	}
	last := train(ctx, model, rewards, before)
	draw(ctx, backend, model, lucky, greedy)
	if *short && began < *steps && last <= before {
		log.Fatalf("it did not learn: mean reward %.3f, then %.3f", before, last)
	}
}

// train makes the steps that are left and returns the last mean reward that was measured.
func train(ctx context.Context, model *art.Model, rewards hook, last float64) float64 {
	for step := model.Step(); step < *steps; step++ {
		start := time.Now()
		gathered, err := art.GatherGroups(ctx, make([]struct{}, *groups),
			func(ctx context.Context, _ struct{}) (*art.Trajectory, error) {
				return play(ctx, model, art.GroupRand(ctx))
			},
			&art.GatherOptions{GroupSize: *group, Concurrency: 64, Seed: uint64(step), After: rewards, Events: line})
		check(err)
		result, err := model.Train(ctx, gathered, &art.TrainConfig{
			Loss: credit.PPO, LearningRate: *rate * min(1, 50/float64(step+1)),
			Epochs: 3, MiniBatches: 2, MaxGradNorm: 1, WeightDecay: new(0.0),
		})
		check(err)
		check(model.Log(ctx, "train", gathered, result.Metrics))
		m := art.Metrics(gathered...)
		fmt.Printf("step %3d  reached %3.0f%%  invalid %3.0f%%  moves %4.1f  entropy %.2f  %v\n",
			step, 100*m["win"], 100*m["invalid_move"], m["num_moves"], result.Metrics["loss/entropy"],
			time.Since(start).Round(time.Second))
		if step%20 == 19 || step == *steps-1 {
			last = evaluate(ctx, model)
		}
	}
	return last
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// validate reads the size of the board.
func validate() error {
	n, err := fmt.Sscanf(*size, "%dx%d", &rows, &columns)
	if n < 2 || err != nil || rows < 2 || columns < 2 || rows*columns > 64 {
		return fmt.Errorf("-board is %q, want rows x columns such as 2x3", *size)
	}
	if *target < 8 || *target&(*target-1) != 0 {
		return fmt.Errorf("-target is %d, want a power of 2 of at least 8", *target)
	}
	return nil
}

func open(ctx context.Context) (*local.Backend, *art.Model, error) {
	name := strings.TrimSuffix(filepath.Base(*base), ".gguf")
	name = fmt.Sprintf("%s-%s-%d-%d", name, *size, *target, *seed)
	if *judge != "" {
		name += "-" + *judge
	}
	backend, err := local.Open(ctx, &local.Options{Dir: *dir, Slots: 64, Context: 256})
	if err != nil {
		return nil, nil, err
	}
	model := art.NewModel(name, &art.ModelOptions{
		Events:  line,
		Project: "game2048", Base: *base, Seed: *seed, LoRA: art.LoRA{Rank: 32},
		Chat:      art.ChatOptions{MaxTokens: new(4)},
		Retention: &art.Retention{Newest: 1, Best: "val/reward"},
	})
	return backend, model, model.Register(ctx, backend)
}

// play is the agent: a chat for each move. first draws the first board.
func play(ctx context.Context, model *art.Model, first *rand.Rand) (*art.Trajectory, error) {
	t := art.NewTrajectory()
	err := playGame(t, newBoard(rows, columns, first), art.Rand(ctx), func(b *board) (string, error) {
		h := question(b)
		reply, err := model.Complete(ctx, &h, nil)
		if err != nil {
			return "", err
		}
		h.Add(reply.Message)
		if len(t.Messages) == 0 {
			t.History = h
		} else {
			t.AdditionalHistories = append(t.AdditionalHistories, h)
		}
		return reply.Message.Content, nil
	})
	return t, err
}

// question is what the agent is asked before each move.
func question(b *board) art.History {
	return art.History{Messages: []art.Message{
		art.System("Slide the tiles: up, down, left or right?"), art.User(b.String()),
	}}
}

// teachMoves trains the model on some games of the random player. Each move is as likely as the others.
func teachMoves(ctx context.Context, model *art.Model, games int) error {
	var shown []*art.Trajectory
	rng := rand.New(rand.NewPCG(*seed, 0))
	for range games {
		err := playGame(art.NewTrajectory(), newBoard(rows, columns, rng), rng, func(b *board) (string, error) {
			t, move := &art.Trajectory{History: question(b)}, randomMove(b, rng)
			t.Add(art.Assistant(move))
			shown = append(shown, t)
			return move, nil
		})
		if err != nil {
			return err
		}
	}
	_, err := model.TrainSFT(ctx, shown, &art.SFTConfig{
		LearningRate: 2e-3, BatchSize: 32, Epochs: 3, Decay: new(0.02), Seed: *seed,
	})
	return err
}

// playGame plays to the end and sets the reward and the metrics of t.
func playGame(t *art.Trajectory, b *board, rng *rand.Rand, choose player) error {
	t.Metrics = map[string]float64{"win": 0, "invalid_move": 0, "num_moves": 0}
	for !b.over(*target) && t.Metrics["invalid_move"] == 0 {
		move, err := choose(b)
		if err != nil {
			return err
		}
		t.Metrics["num_moves"]++
		if !b.slide(move) {
			t.Metrics["invalid_move"] = 1
		} else if !b.over(*target) {
			b.spawn(rng)
		}
	}
	t.Reward = reward(b, *target)
	if t.Metrics["invalid_move"] == 1 {
		t.Reward = invalid
	} else if b.highest() >= *target {
		t.Metrics["win"] = 1
	}
	t.Metrics["max_value"], t.Metrics["board_value"] = float64(b.highest()), float64(b.sum())
	return nil
}
