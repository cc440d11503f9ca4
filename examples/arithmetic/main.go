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
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/backend/track/terminal"
)

var (
	base  = flag.String("model", "tiny", "base model: a folder, a GGUF file, ORG/NAME on the hub, or tiny")
	seed  = flag.Uint64("seed", 1, "seed of the run")
	steps = flag.Int("steps", 60, "training steps")
	batch = flag.Int("batch", 16, "questions per step, each asked 8 times")
	rate  = flag.Float64("rate", 2e-3, "learning rate; larger models need less, 1e-4 for 100 million parameters")
	dir   = flag.String("dir", ".art", "where runs are stored")
)

// sum is a question: a + b.
type sum struct {
	a, b     int
	question string // with {a} and {b}
}

var number = regexp.MustCompile(`-?[0-9]+`)

// line shows on a terminal how far the program is.
var line = terminal.New(&terminal.Options{Quiet: true})

func main() {
	flag.Parse()
	ctx := context.Background()
	fmt.Printf("loading %s, then measuring it\n", *base)
	backend, err := local.Open(ctx, &local.Options{Dir: *dir, Context: 128})
	check(err)
	defer backend.Close()
	name := fmt.Sprintf("adder-%s-%d", strings.TrimSuffix(filepath.Base(*base), ".gguf"), *seed)
	model := art.NewModel(name, &art.ModelOptions{
		Events:  line,
		Project: "arithmetic", Base: *base, Seed: *seed, Chat: art.ChatOptions{MaxTokens: new(8)},
	})
	check(model.Register(ctx, backend))
	known, unseen := split()
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
		groups, err := art.GatherGroups(ctx, b.Items, func(ctx context.Context, s sum) (*art.Trajectory, error) {
			return ask(ctx, model, s, nil)
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

// split returns the sums of two digits, each in four wordings: three quarters to train on, and the held-out ones.
func split() (known, unseen []sum) {
	for i, cell := range rand.New(rand.NewPCG(0, 0)).Perm(100) {
		for _, question := range []string{"What is {a} + {b}?", "{a} plus {b}?", "{a}+{b}=", "How much is {a} plus {b}?"} {
			s := sum{cell / 10, cell % 10, question}
			if i < 25 {
				unseen = append(unseen, s)
			} else {
				known = append(known, s)
			}
		}
	}
	return known, unseen
}

// ask is the agent. A correct answer is the number and nothing else; a wrong number gets a small reward, so that a
// model that talks around the answer first learns to give one.
func ask(ctx context.Context, model *art.Model, s sum, opts *art.ChatOptions) (*art.Trajectory, error) {
	question := strings.NewReplacer("{a}", strconv.Itoa(s.a), "{b}", strconv.Itoa(s.b)).Replace(s.question)
	t := art.NewTrajectory(art.System("Reply with a number."))
	if *base != "tiny" { // which knows what an answer looks like; others get an example
		t.Add(art.User("What is 10 + 10?"))
		t.Add(art.Assistant("20"))
	}
	t.Add(art.User(question))
	reply, err := model.Chat(ctx, t, opts)
	if err != nil {
		return nil, err
	}
	t.Metrics = map[string]float64{"right": 0}
	want, text := strconv.Itoa(s.a+s.b), strings.TrimSpace(reply.Content)
	switch {
	case text == want:
		t.Reward, t.Metrics["right"] = 1, 1
	case number.FindString(text) == text && text != "":
		t.Reward = 0.1
	}
	return t, nil
}

// evaluate asks each question once, with greedy decoding.
func evaluate(ctx context.Context, model *art.Model, sums []sum) {
	g, err := art.Gather(ctx, sums, func(ctx context.Context, s sum) (*art.Trajectory, error) {
		return ask(ctx, model, s, &art.ChatOptions{Temperature: new(0.0)})
	}, &art.GatherOptions{Concurrency: 64, Events: line})
	check(err)
	fmt.Printf("greedy at step %d: %.0f%% of %d held-out questions correct\n", model.Step(),
		100*art.Metrics(g)["right"], len(sums))
	check(model.Log(ctx, "val", []*art.TrajectoryGroup{g}, nil))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
