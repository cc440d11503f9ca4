// Command arithmetic trains a language model to add two digits, in this process: go run ./examples/arithmetic
//
// One message is the question, the reply is the answer: the smallest task for reinforcement learning. A quarter of the
// sums is held out for evaluation. With -model FOLDER, FILE.gguf or ORG/NAME it trains another model than the built-in
// one.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"path/filepath"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/examples/arithmetic/sums"
)

var (
	base  = flag.String("model", "tiny", "base model: a folder, a GGUF file, ORG/NAME on the hub, or tiny")
	seed  = flag.Uint64("seed", 1, "seed of the run")
	steps = flag.Int("steps", 60, "training steps")
	batch = flag.Int("batch", 16, "questions per step, each asked 8 times")
	rate  = flag.Float64("rate", 2e-3, "learning rate; larger models need less, 1e-4 for 100 million parameters")
	dir   = flag.String("dir", ".art", "where runs are stored")
	acts  = flag.String("activations", "", "type that quantized weights are multiplied in: float32, or int8, less exact")
)

// line shows on a terminal how far the program is.
var line = terminal.New(&terminal.Options{Quiet: true})

func main() {
	flag.Parse()
	ctx := context.Background()
	fmt.Printf("loading %s, then measuring it\n", *base)
	backend, err := local.Open(ctx, &local.Options{Dir: *dir, Context: 128, Activations: *acts})
	check(err)
	defer backend.Close()
	name := fmt.Sprintf("adder-%s-%d", strings.TrimSuffix(filepath.Base(*base), ".gguf"), *seed)
	model := art.NewModel(name, &art.ModelOptions{
		Events:  line,
		Project: "arithmetic", Base: *base, Seed: *seed, Chat: art.ChatOptions{MaxTokens: new(8)},
	})
	check(model.Register(ctx, backend))
	known, unseen := sums.Split()
	rows, err := backend.History(ctx, model)
	check(err)
	if right, ok := art.Logged(rows, "val/right", model.Step()); ok { // logged before the run was stopped
		fmt.Printf("greedy at step %d: %.0f%% correct, as measured before\n", model.Step(), 100*right)
	} else {
		evaluate(ctx, model, unseen)
	}
	if model.Step() >= *steps {
		fmt.Printf("The run is finished: it is at step %d of %d. Train it further with -steps %d, or begin another with "+
			"-seed or -dir.\n", model.Step(), *steps, model.Step()+20)
	}

	start := time.Now()
	for b := range art.Batches(known, &art.BatchOptions{Size: *batch, Epochs: -1, Seed: *seed, Start: model.Step()}) {
		if model.Step() >= *steps {
			break
		}
		groups, err := art.GatherGroups(ctx, b.Items, func(ctx context.Context, s sums.Sum) (*art.Trajectory, error) {
			return sums.Ask(ctx, model, s, nil)
		}, &art.GatherOptions{GroupSize: 8, Concurrency: 64, Seed: uint64(b.Step), Events: line})
		check(err)
		result, err := model.Train(ctx, groups, &art.TrainConfig{LearningRate: *rate, MaxGradNorm: 1})
		check(err)
		check(model.Log(ctx, "train", groups, result.Metrics))
		fmt.Printf("step %3d  correct %3.0f%%  entropy %.2f  %v\n",
			result.Step-1, 100*art.Metrics(groups...)["right"], result.Metrics["loss/entropy"],
			time.Since(start).Round(time.Second))
		if model.Step()%10 == 0 || model.Step() == *steps {
			evaluate(ctx, model, unseen)
		}
	}

	folder, err := backend.Dir(model)
	check(err)
	rows, err = backend.History(ctx, model)
	check(err)
	curves := filepath.Join(folder, "reward.svg")
	check(plot.Save(curves,
		&plot.Chart{Title: "Sums of two digits", Y: "correct answers", Percent: true, Series: []plot.Series{
			{Name: "training", Points: plot.History(rows, "train/right"), Smooth: true},
			{Name: "greedy, on held-out sums", Points: plot.History(rows, "val/right")},
		}}))
	fmt.Println("curves:", curves)
}

// evaluate asks each question once, with greedy decoding.
func evaluate(ctx context.Context, model *art.Model, questions []sums.Sum) {
	g, err := art.Gather(ctx, questions, func(ctx context.Context, s sums.Sum) (*art.Trajectory, error) {
		return sums.Ask(ctx, model, s, &art.ChatOptions{Temperature: new(0.0)})
	}, &art.GatherOptions{Concurrency: 64, Events: line})
	check(err)
	fmt.Printf("greedy at step %d: %.0f%% of %d held-out questions correct\n", model.Step(),
		100*art.Metrics(g)["right"], len(questions))
	check(model.Log(ctx, "val", []*art.TrajectoryGroup{g}, nil))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
