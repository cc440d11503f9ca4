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
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/interval"
	"github.com/goart-dev/art/ruler"
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

// baseline measures a player that needs no model, and returns the share of its games that reached the target.
func baseline(ctx context.Context, name string, move func(*board, *rand.Rand) string) float64 {
	_, _, share := measure(ctx, name, func(ctx context.Context) (*art.Trajectory, error) {
		t, rng := art.NewTrajectory(), art.Rand(ctx)
		first := newBoard(rows, columns, rng)
		return t, playGame(t, first, rng, func(b *board) (string, error) { return move(b, rng), nil })
	})
	return share
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
	name := fmt.Sprintf("model, step %d", model.Step())
	g, mean, _ := measure(ctx, name, func(ctx context.Context) (*art.Trajectory, error) {
		return play(ctx, model, art.Rand(ctx))
	})
	check(model.Log(ctx, "val", []*art.TrajectoryGroup{g}, nil))
	return mean
}

// measure plays the games of a measurement and prints a row of the table, with 95 % confidence intervals.
func measure(
	ctx context.Context, name string, game func(context.Context) (*art.Trajectory, error),
) (g *art.TrajectoryGroup, mean, share float64) {
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
	fmt.Printf("%-20s %6.3f [%6.3f, %6.3f]  %5.1f%% [%5.1f, %5.1f]\n", name, mean, low, high,
		100*share, 100*least, 100*most)
	return g, mean, share
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
