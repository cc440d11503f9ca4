// Command arte trains a language model to answer questions about a mailbox, in this process: go run ./examples/arte
//
// It is ART·E, the mail agent, in small. The agent searches, reads and answers by tool calls; a run is one chat and one
// trajectory. The mail is synthetic: thousands of messages in SQLite with full-text search. Each question has exactly
// one right source, and those of the measurements are about threads that are never trained on. The words of a question
// find one message at -level 1, also a request or a reply with the same words at -level 2, and a whole thread at
// -level 3.
//
// The first step is supervised, on runs that read any of the messages found: it teaches the tools and no skill. All
// others are reinforcement learning; with -demos 0 the first is too. Stop it at any time: run again, and it continues
// at the last step. -model FOLDER, FILE.gguf or ORG/NAME trains another model than the built-in one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"path/filepath"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/examples/arte/mailbox"
	"github.com/goart-dev/art/grpo/credit"
)

var (
	base     = flag.String("model", "tiny", "base model: a folder, a GGUF file, ORG/NAME of the hub, or tiny")
	format   = flag.String("tool-format", "", "format of tools for a model whose template has none, such as hermes")
	seed     = flag.Uint64("seed", 1, "seed of the run and of the mail")
	steps    = flag.Int("steps", 60, "training steps")
	batch    = flag.Int("batch", 8, "questions of a step")
	group    = flag.Int("group", 16, "runs of a group, which answer the same question")
	count    = flag.Int("measure", 200, "held-out questions of a measurement")
	rate     = flag.Float64("rate", 5e-4, "learning rate; from step 50 on it falls as 1/step")
	level    = flag.Int("level", mailbox.Discussed, "difficulty of the questions, 1 to 3")
	messages = flag.Int("messages", 6000, "messages in the mailbox, at least")
	demos    = flag.Int("demos", 600, "runs to learn the tools from, in a first step that is supervised; 0 is none")
	judge    = flag.String("judge", "",
		"train by a judge alone: ruler is a rule, MODEL@URL a model; else by the reward bands")
	url   = flag.String("baseline", "", "OpenAI-compatible URL of a model to measure beside")
	name  = flag.String("baseline-model", "", "its name")
	dir   = flag.String("dir", ".art", "where runs are stored")
	short = flag.Bool("short", false, "10 steps; fail unless the reward is higher after them")
)

// experiment is a run and what it is trained and measured on.
type experiment struct {
	backend *local.Backend
	model   *art.Model
	box     *mailbox.Box
	store   *mailbox.Store
}

// line shows on a terminal how far the program is.
var line = terminal.New(&terminal.Options{Quiet: true})

func main() {
	flag.Parse()
	if *short {
		*steps = 10
	}
	ctx := context.Background()
	rewards, err := after(ctx, *judge)
	check(err)
	e, err := open(ctx)
	check(err)
	defer e.close()
	e.compare(ctx)
	before, began := e.measured(ctx), e.model.Step()
	if began >= *steps {
		fmt.Printf("The run is finished: it is at step %d of %d. Train it further with -steps %d and without -short, "+
			"or begin another with -seed or -dir.\n", began, *steps, began+50)
	}
	if began == 0 && *steps > 0 && *demos > 0 {
		check(e.demonstrate(ctx))
		before = e.evaluate(ctx)
	}
	last := e.train(ctx, rewards, before)
	e.draw(ctx)
	if *short && began < *steps && last <= before {
		log.Fatalf("it did not learn: mean reward %.3f, then %.3f", before, last)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func open(ctx context.Context) (*experiment, error) {
	if *level < mailbox.Named || *level > mailbox.Dated {
		return nil, fmt.Errorf("-level is %d, want 1 to 3", *level)
	}
	run := fmt.Sprintf("%s-%d-%d", strings.TrimSuffix(filepath.Base(*base), ".gguf"), *level, *seed)
	if *judge != "" {
		run += "-" + *judge
	}
	e := &experiment{box: mailbox.New(*messages, *level, *seed)}
	e.model = art.NewModel(run, &art.ModelOptions{
		Events:  line,
		Project: "arte", Base: *base, Seed: *seed, LoRA: art.LoRA{Rank: 32},
		Chat: art.ChatOptions{MaxTokens: new(64)}, ToolFormat: *format,
		Retention: &art.Retention{Newest: 1, Best: "val/reward"},
	})
	var err error
	if e.store, err = mailbox.Open(ctx, e.box.Messages); err != nil {
		return nil, err
	}
	fmt.Printf("loading %s, then measuring it\n", *base)
	if e.backend, err = local.Open(ctx, &local.Options{Dir: *dir, Slots: 64, Context: 1024}); err != nil {
		return nil, errors.Join(err, e.store.Close())
	}
	if err := e.model.Register(ctx, e.backend); err != nil {
		return nil, errors.Join(err, e.backend.Close(), e.store.Close())
	}
	return e, nil
}

func (e *experiment) close() {
	check(e.backend.Close())
	check(e.store.Close())
}

// train makes the steps that are left and returns the last mean reward on held-out questions.
func (e *experiment) train(ctx context.Context, rewards hook, last float64) float64 {
	opts := &art.BatchOptions{Size: *batch, Epochs: -1, Seed: *seed, Start: e.model.Step()}
	for b := range art.Batches(e.box.Train, opts) {
		if b.Step >= *steps {
			break
		}
		start := time.Now()
		groups, err := art.GatherGroups(ctx, b.Items, e.answer(sampled(e.model, nil)), &art.GatherOptions{
			Events:    line,
			GroupSize: *group, Concurrency: 64, Seed: uint64(b.Step), After: rewards,
		})
		check(err)
		result, err := e.model.Train(ctx, groups, &art.TrainConfig{
			Loss: credit.PPO, LearningRate: *rate * min(1, 50/float64(b.Step+1)),
			Epochs: 2, MiniBatches: 2, MaxGradNorm: 1, WeightDecay: new(0.0),
		})
		check(err)
		check(e.model.Log(ctx, "train", groups, result.Metrics))
		m := art.Metrics(groups...)
		fmt.Printf("step %3d  reward %5.2f  right %3.0f%%  read %3.0f%%  cited %3.0f%%  format %3.0f%%  entropy %.2f  %v\n",
			b.Step, m["reward"], 100*m["right"], 100*m["read"], 100*m["cited"], 100*m["format"],
			result.Metrics["loss/entropy"], time.Since(start).Round(time.Second))
		if b.Step%20 == 19 || b.Step == *steps-1 {
			last = e.evaluate(ctx)
		}
	}
	return last
}

// answer is the rollout by a policy.
func (e *experiment) answer(next policy) func(context.Context, mailbox.Question) (*art.Trajectory, error) {
	return func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
		return answer(ctx, next, &run{store: e.store, question: q})
	}
}

// demonstrate trains the model on runs of the careless agent: they show how to use the tools, and not which of the
// messages found is the right one. None is about a thread that is held out.
func (e *experiment) demonstrate(ctx context.Context) error {
	questions := e.box.Train[:min(*demos, len(e.box.Train))]
	shown, err := art.Gather(ctx, questions, func(ctx context.Context, q mailbox.Question) (*art.Trajectory, error) {
		return e.answer(careless(q, art.Rand(ctx)))(ctx, q)
	}, &art.GatherOptions{Seed: *seed})
	if err != nil {
		return err
	}
	_, err = e.model.TrainSFT(ctx, shown.Trajectories, &art.SFTConfig{
		LearningRate: 2e-3, BatchSize: 16, Epochs: 3, Decay: new(0.02), Seed: *seed,
	})
	return err
}
