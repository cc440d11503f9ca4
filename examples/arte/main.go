// Command arte trains a language model to answer questions about a mailbox, in this process: go run ./examples/arte
//
// It is the mail agent ART·E in small. The agent searches, reads and answers by tool calls; a run is one chat and one
// trajectory. The mail is synthetic, thousands of messages in SQLite with full-text search, and each question has exactly
// one right source. Questions to measure with are about threads that are never trained on. -level 1 says what to search for,
// -level 2 has replies with the same words, -level 3 wants the filters of the search. Stop it at any time: run again, it
// goes on at the last step. -model FOLDER, FILE.gguf or ORG/NAME trains another model than the built-in one.
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
	"github.com/goart-dev/art/examples/arte/mailbox"
)

var (
	base     = flag.String("model", "tiny", "base model: a folder, a GGUF file, ORG/NAME of the hub, or tiny")
	seed     = flag.Uint64("seed", 1, "seed of the run and of the mail")
	steps    = flag.Int("steps", 100, "training steps")
	batch    = flag.Int("batch", 8, "questions of a step")
	group    = flag.Int("group", 16, "runs of a group, which answer the same question")
	count    = flag.Int("measure", 200, "held-out questions of a measurement")
	rate     = flag.Float64("rate", 1e-3, "learning rate; from step 50 on it falls as 1/step")
	level    = flag.Int("level", mailbox.Named, "difficulty of the questions, 1 to 3")
	messages = flag.Int("messages", 6000, "messages in the mailbox, at least")
	demos    = flag.Int("demos", 0, "runs of the oracle to begin with: the first step is then supervised")
	judge    = flag.String("judge", "", "ruler: train by the scores of a judge alone; else by the reward bands")
	url      = flag.String("baseline", "", "OpenAI-compatible URL of a model to measure beside")
	name     = flag.String("baseline-model", "", "its name")
	dir      = flag.String("dir", ".art", "where runs are stored")
	short    = flag.Bool("short", false, "10 steps; fail unless the reward is higher after them")
)

func main() {
	flag.Parse()
	if *short {
		*steps = 10
	}
	ctx := context.Background()
	box, store, err := openMail(ctx)
	check(err)
	defer store.Close()
	backend, model, err := open(ctx)
	check(err)
	defer backend.Close()
	check(compare(ctx, store, box.Held))
	before := measured(ctx, backend, model, store, box.Held)
	check(train(ctx, backend, model, store, box, before))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// openMail makes the mailbox and opens its database.
func openMail(ctx context.Context) (*mailbox.Box, *mailbox.Store, error) {
	if *level < mailbox.Named || *level > mailbox.Dated {
		return nil, nil, fmt.Errorf("-level is %d, want 1 to 3", *level)
	}
	box := mailbox.New(*messages, *level, *seed)
	box.Held = box.Held[:min(*count, len(box.Held))]
	store, err := mailbox.Open(ctx, box.Messages)
	return box, store, err
}

func open(ctx context.Context) (*local.Backend, *art.Model, error) {
	run := fmt.Sprintf("%s-%d-%d", strings.TrimSuffix(filepath.Base(*base), ".gguf"), *level, *seed)
	if *judge != "" {
		run += "-" + *judge
	}
	backend, err := local.Open(ctx, &local.Options{Dir: *dir, Slots: 64, Context: 1024})
	if err != nil {
		return nil, nil, err
	}
	model := art.NewModel(run, &art.ModelOptions{
		Project: "arte", Base: *base, Seed: *seed, LoRA: art.LoRA{Rank: 32}, Chat: art.ChatOptions{MaxTokens: new(64)},
		Retention: &art.Retention{Newest: 1, Best: "val/reward"},
	})
	return backend, model, model.Register(ctx, backend)
}

// train is the loop. It ends with a plot, and with -short by a comparison.
func train(ctx context.Context, backend *local.Backend, model *art.Model, store *mailbox.Store, box *mailbox.Box, before float64) error {
	rewards, err := after(*judge)
	if err != nil {
		return err
	}
	began, last, start := model.Step(), before, time.Now()
	if began >= *steps {
		fmt.Printf("The run is finished: it is at step %d of %d. Train it further with -steps %d and without -short, "+
			"or begin another with -seed or -dir.\n", began, *steps, began+50)
	}
	if began == 0 && *demos > 0 {
		check(demonstrate(ctx, model, store, box.Train))
		last = evaluate(ctx, model, store, box.Held)
	}
	for b := range art.Batches(box.Train, &art.BatchOptions{Size: *batch, Epochs: -1, Seed: *seed, Start: model.Step()}) {
		if b.Step >= *steps {
			break
		}
		groups, err := art.GatherGroups(ctx, b.Items, func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
			return answer(ctx, sampled(model, nil), store, *level, q)
		}, &art.GatherOptions{GroupSize: *group, Concurrency: 64, Seed: uint64(b.Step), After: rewards})
		check(err)
		result, err := model.Train(ctx, groups, &art.TrainConfig{
			Loss: art.LossPPO, LearningRate: *rate * min(1, 50/float64(b.Step+1)),
			Epochs: 2, MiniBatches: 2, MaxGradNorm: 1, WeightDecay: new(0.0),
		})
		check(err)
		check(model.Log(ctx, "train", groups, result.Metrics))
		m := art.Metrics(groups...)
		fmt.Printf("step %3d  reward %5.2f  format %3.0f%%  found %3.0f%%  read %3.0f%%  cited %3.0f%%  right %3.0f%%  entropy %.2f  %v\n",
			b.Step, m["reward"], 100*m["format"], 100*m["found"], 100*m["read"], 100*m["cited"], 100*m["right"],
			result.Metrics["loss/entropy"], time.Since(start).Round(time.Second))
		if b.Step%20 == 19 || b.Step == *steps-1 {
			last = evaluate(ctx, model, store, box.Held)
		}
	}
	if err := draw(ctx, backend, model); err != nil {
		return err
	}
	if *short && began < *steps && last <= before {
		return fmt.Errorf("it did not learn: mean reward %.3f, then %.3f", before, last)
	}
	return nil
}

// demonstrate trains the model on runs of the oracle.
func demonstrate(ctx context.Context, model *art.Model, store *mailbox.Store, questions []mailbox.Question) error {
	shown, err := art.Gather(ctx, questions[:min(*demos, len(questions))], func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
		return answer(ctx, oracle(q), store, *level, q)
	}, nil)
	if err != nil {
		return err
	}
	_, err = model.TrainSFT(ctx, shown.Trajectories, &art.SFTConfig{LearningRate: 2e-3, Decay: new(0.02), Seed: *seed})
	return err
}
