// Command tictactoe trains a language model to play tic-tac-toe, in this process: go run ./examples/tictactoe
//
// A game is a chat and one trajectory, which package game plays: each message is the opponent's cell, each reply the
// agent's, and the result is the reward. It trains against an opponent that wins where it can, and is evaluated against
// one that moves at random. It can be stopped at any time: the next run resumes at the last step. With -model FOLDER,
// FILE.gguf or ORG/NAME it trains another model than the built-in one: -model SmolLM2-135M.gguf -rate 2e-4 -group 8
// -measure 100 -steps 10.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/examples/tictactoe/game"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/ruler"
)

var (
	seed   = flag.Uint64("seed", 1, "seed of the run")
	steps  = flag.Int("steps", 200, "training steps, each with 4 groups of games")
	group  = flag.Int("group", 32, "games per group")
	games  = flag.Int("measure", 1000, "games per evaluation, an even number")
	rate   = flag.Float64("rate", 1e-3, "learning rate; from step 50 on it decays as 1/step")
	dir    = flag.String("dir", ".art", "where runs are stored")
	base   = flag.String("model", "tiny", "base model: a folder, a GGUF file, ORG/NAME on the hub, or tiny")
	device = flag.String("device", "cpu", "cpu, or xla:cpu, xla:cuda where XLA is installed")
	judge  = flag.String("judge", "", "ruler: train by the scores of a judge alone; else by the reward of the game")
	short  = flag.Bool("short", false, "10 steps; fail unless fewer games are lost after them")
)

// events show how far the program is: on a line of the terminal, and on the live page.
var events = terminal.New(&terminal.Options{Quiet: true})

func main() {
	flag.Parse()
	if *short {
		*steps = 10
	}
	ctx := context.Background()
	rewards, err := after(*judge)
	check(err)
	page, err := dash.Start("127.0.0.1:0", &dash.Options{Dir: *dir, Tokens: tokens})
	check(err)
	defer page.Close()
	fmt.Println("live page:", page.Link())
	events = art.JoinEvents(events, page.Events())
	backend, model, err := open(ctx)
	check(err)
	defer backend.Close()
	fmt.Println("device:", backend.Device())
	before := measured(ctx, backend, model)
	began, after, start := model.Step(), before, time.Now()
	if began >= *steps {
		fmt.Printf("The run is finished: it is at step %d of %d. Train it further with -steps %d and without -short, "+
			"or begin another with -seed or -dir.\n", began, *steps, began+50)
	}

	for step := model.Step(); step < *steps; step++ {
		groups, err := art.GatherGroups(ctx, []bool{true, false, true, false}, func(
			ctx context.Context, first bool,
		) (*art.Trajectory, error) {
			return game.Play(ctx, model, first, game.Sharp(art.Rand(ctx).IntN), nil)
		}, &art.GatherOptions{GroupSize: *group, Concurrency: 64, Seed: uint64(step), After: rewards, Events: events})
		check(err)
		result, err := model.Train(ctx, groups, &art.TrainConfig{
			Loss: credit.PPO, LearningRate: *rate * min(1, 50/float64(step+1)),
			Epochs: 3, MiniBatches: 2, MaxGradNorm: 1, WeightDecay: new(0.0),
		})
		check(err)
		check(model.Log(ctx, "train", groups, result.Metrics))
		fmt.Printf("step %3d  won or drawn %3.0f%%  entropy %.2f  %v\n",
			step, 100*art.Metrics(groups...)["not_lost"], result.Metrics["loss/entropy"], time.Since(start).Round(time.Second))
		if step%20 == 19 || step == *steps-1 {
			after = evaluate(ctx, model)
		}
	}

	dir, err := backend.Dir(model)
	check(err)
	rows, err := backend.History(ctx, model)
	check(err)
	curves := filepath.Join(dir, "reward.svg")
	chart := &plot.Chart{Title: "Tic-tac-toe", Y: "games won or drawn", Percent: true, Series: []plot.Series{
		{Name: "training, against a stronger opponent", Points: plot.History(rows, "train/not_lost"), Smooth: true},
		{Name: "greedy, against a random opponent", Points: plot.History(rows, "val/not_lost")},
	}}
	check(plot.Save(curves, chart))
	fmt.Println("curves:", curves)
	if *short && began < *steps && after <= before {
		log.Fatalf("no improvement: %.3f won or drawn before, %.3f after", before, after)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func open(ctx context.Context) (*local.Backend, *art.Model, error) {
	name, room := fmt.Sprintf("player-%d", *seed), 64 // tokens of a game in the template of the built-in model
	if *base != "tiny" {
		name, room = fmt.Sprintf("player-%s-%d", strings.TrimSuffix(filepath.Base(*base), ".gguf"), *seed), 384
	}
	if *judge != "" {
		name += "-" + *judge
	}
	fmt.Printf("loading %s, then measuring it\n", *base)
	backend, err := local.Open(ctx, &local.Options{Dir: *dir, Device: *device, Slots: 64, Context: room})
	if err != nil {
		return nil, nil, err
	}
	model := art.NewModel(name, &art.ModelOptions{
		Events:  events,
		Project: "tictactoe", Base: *base, Seed: *seed, LoRA: art.LoRA{Rank: 32}, Chat: art.ChatOptions{MaxTokens: new(4)},
	})
	return backend, model, model.Register(ctx, backend)
}

// measured returns the fraction of games won or drawn at the step of the run: the logged one, or else measured now.
func measured(ctx context.Context, backend *local.Backend, model *art.Model) float64 {
	rows, err := backend.History(ctx, model)
	check(err)
	if share, ok := art.Logged(rows, "val/not_lost", model.Step()); ok {
		fmt.Printf("greedy at step %d: %.1f%% of games won or drawn, as measured before\n", model.Step(), 100*share)
		return share
	}
	return evaluate(ctx, model)
}

// evaluate plays games with greedy decoding, half of them on each side, and returns the fraction won or drawn.
func evaluate(ctx context.Context, model *art.Model) float64 {
	g, err := art.Gather(ctx, slices.Repeat([]bool{true, false}, *games/2), func(
		ctx context.Context, first bool,
	) (*art.Trajectory, error) {
		return game.Play(ctx, model, first, game.Random(art.Rand(ctx).IntN), &art.ChatOptions{Temperature: new(0.0)})
	}, &art.GatherOptions{Concurrency: 64, Seed: 1 << 32, Events: events})
	check(err)
	m := art.Metrics(g)
	fmt.Printf("greedy at step %d: %.1f%% of %d games won or drawn, %.2f%% of moves legal\n",
		model.Step(), 100*m["not_lost"], len(g.Trajectories), 100-100*m["illegal"]/m["moves"])
	check(model.Log(ctx, "val", []*art.TrajectoryGroup{g}, nil))
	return m["not_lost"]
}

// tokens returns the texts of the tokens of a run, for the live page.
func tokens(run *rundir.Run) (func(id int32) []byte, error) {
	tok, err := basemodel.Tokenizer(run.About().Base)
	if err != nil {
		return nil, fmt.Errorf("the tokenizer of %s: %w", run.About().Base, err)
	}
	return tok.TokenBytes, nil
}

// hook is the type of art.GatherOptions.After.
type hook = func(context.Context, *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error)

// after returns what gives the games of a group their rewards: nil for the reward of the game itself, and RULER with a
// rule in place of a language model.
func after(judge string) (hook, error) {
	switch judge {
	case "":
		return nil, nil
	case "ruler":
		return ruler.New(nil, &ruler.Options{Judges: []ruler.Judge{ruler.JudgeFunc(compare)}, Chunk: 64}).After, nil
	}
	return nil, fmt.Errorf("-judge is %q, want ruler or nothing", judge)
}

// compare rates games as a spectator would: won, drawn, lost, broken off with what is no move; of those that did not
// end well, a longer one is a little better.
func compare(_ context.Context, items []ruler.Item) ([]ruler.Rating, error) {
	var ratings []ruler.Rating
	for _, item := range items {
		m := item.Trajectory.Metrics
		score, text := 0.25+0.01*m["moves"], "lost"
		switch {
		case m["illegal"] == 1:
			score, text = 0.01*m["moves"], "no move"
		case m["won"] == 1:
			score, text = 1, "won"
		case m["not_lost"] == 1:
			score, text = 0.85, "drawn"
		}
		ratings = append(ratings, ruler.Rating{ID: item.ID, Explanation: text, Score: score})
	}
	return ratings, nil
}
