// Command sql trains a language model to answer questions about databases, in this process: go run ./examples/sql
//
// The agent runs queries, reads the rows and answers: one chat, one trajectory, at most three messages. A query is the
// call of a tool, or with -calls text a block in the text of a reply: models write it that know code better than tools.
// Databases and questions are made from a seed. Those of the measurements are of lines of business that are never
// trained on, with other names of tables and columns. At -level 1 a question needs one table, at 2 a join, at 3 also
// groups or dates. At 0, for the built-in model, it is about a whole table, of a known line of business.
//
// Three conventions hold in every database, which no schema tells: amounts are stored in cents and questions ask for
// euros, cancelled events do not count, and deleted people do not count. -prompt good tells them, with worked examples:
// a model heeds them in some answers, and training makes it heed them in most. -prompt plain does not: the model has
// to find them by the reward, and -baseline measures beside it what the untrained model does with the good prompt.
//
// The built-in model first learns what a query is, in a step that is supervised, on queries that follow any of the
// conventions or none; other models know. All other steps are reinforcement learning. Stop it at any time: run again,
// and it continues at the last step. It is meant for a model that has seen SQL, such as what fetch.sh downloads:
//
//	examples/sql/fetch.sh FILE.gguf
//	go run ./examples/sql -model FILE.gguf
package main

import (
	"cmp"
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
	"github.com/goart-dev/art/examples/sql/world"
)

var (
	base     = flag.String("model", builtin, "base model: a folder, a GGUF file, ORG/NAME of the hub, or tiny")
	format   = flag.String("tool-format", "", "format of tools for a model whose template has none, such as hermes")
	prompt   = flag.String("prompt", "", "plain or good: it tells the conventions; default: plain for tiny, else good")
	calls    = flag.String("calls", "", "queries by tool or in text; default: tool for tiny or with a format, else text")
	seed     = flag.Uint64("seed", 1, "seed of the run, the databases and the questions")
	steps    = flag.Int("steps", 40, "training steps")
	batch    = flag.Int("batch", 8, "questions of a step")
	group    = flag.Int("group", 0, "runs of a group, which answer the same question; 0 is 16 for tiny, else 8")
	count    = flag.Int("measure", 200, "held-out questions of a measurement")
	every    = flag.Int("every", 20, "steps between measurements")
	rate     = flag.Float64("rate", 0, "learning rate; 0 is that of the backend, by the size of the model")
	level    = flag.Int("level", -1, "difficulty of the questions, 0 to 3; -1 is 0 for tiny, else 1")
	demos    = flag.Int("demos", -1, "runs to learn from in a first, supervised step; -1 is 1200 for tiny, else 0")
	baseline = flag.Bool("baseline", false, "of -prompt plain: measure the untrained model with the good prompt too")
	dir      = flag.String("dir", ".art", "where runs are stored")
	short    = flag.Bool("short", false, "10 steps, 40 questions; fail unless the reward is higher after them")
)

const (
	builtin     = "tiny"
	good        = "good" // of -prompt
	project     = "sql"
	concurrency = 64
)

// chat are the options of all models: a query needs some 80 tokens.
var chat = art.ChatOptions{MaxTokens: new(128)}

// experiment is a run and what it is trained and measured on.
type experiment struct {
	backend *local.Backend
	model   *art.Model
	world   *world.World
}

// line shows on a terminal how far the program is.
var line = terminal.New(&terminal.Options{Quiet: true})

func main() {
	flag.Parse()
	ctx := context.Background()
	var e *experiment
	err := settle()
	if err == nil {
		e, err = open(ctx)
	}
	if err == nil {
		err = errors.Join(e.run(ctx), e.close())
	}
	if err != nil {
		log.Fatal(err)
	}
}

// settle fills in what depends on the model, and what -short says.
func settle() error {
	usual, shown, runs, begins := world.Single, 0, 8, good
	if *base == builtin {
		usual, shown, runs, begins = world.Whole, 1200, 16, "plain"
	}
	*prompt, *group = cmp.Or(*prompt, begins), cmp.Or(*group, runs)
	switch {
	case *prompt != good && *prompt != "plain":
		return fmt.Errorf("-prompt is %q, want plain or good", *prompt)
	case *prompt == good && *baseline:
		return errors.New("-baseline measures the good prompt, which the run begins with: leave it out, or use -prompt plain")
	}
	if *level < 0 {
		*level = usual
	}
	if *demos < 0 {
		*demos = shown
	}
	inText = *calls == "text" || *calls == "" && *base != builtin && *format == ""
	if *short {
		*steps, *count = 10, 40
	}
	return nil
}

// run measures, trains, measures again and draws.
func (e *experiment) run(ctx context.Context) error {
	if err := e.compare(ctx); err != nil {
		return err
	}
	before, err := e.measured(ctx)
	if err != nil {
		return err
	}
	began := e.model.Step()
	if began >= *steps {
		fmt.Printf("The run is finished: it is at step %d of %d. Train it further with -steps %d and without -short, "+
			"or begin another with -seed or -dir.\n", began, *steps, began+50)
	}
	last := before
	if began == 0 && *steps > 0 && *demos > 0 {
		if err := e.demonstrate(ctx); err != nil {
			return err
		}
		if last, err = e.evaluate(ctx); err != nil {
			return err
		}
	}
	if last, err = e.train(ctx, last); err != nil {
		return err
	}
	if err := e.draw(ctx); err != nil {
		return err
	}
	if *short && began < *steps && last <= before {
		return fmt.Errorf("it did not learn: mean reward %.3f, then %.3f", before, last)
	}
	return nil
}

// open makes the databases and opens the run.
func open(ctx context.Context) (*experiment, error) {
	name := fmt.Sprintf("%s-%s-%d-%d", strings.TrimSuffix(filepath.Base(*base), ".gguf"), *prompt, *level, *seed)
	e := &experiment{}
	e.model = art.NewModel(name, &art.ModelOptions{
		Events:  line,
		Project: project, Base: *base, Seed: *seed, LoRA: art.LoRA{Rank: 16}, Chat: chat, ToolFormat: *format,
		Retention: &art.Retention{Newest: 1, Best: "val/reward"},
	})
	var err error
	if e.world, err = world.New(ctx, *level, *seed); err != nil {
		return nil, err
	}
	fmt.Printf("loading %s, then measuring it\n", *base)
	opts := &local.Options{
		Dir: *dir, Slots: 32, Context: 1536, CacheTokens: 32 * 768,
		MicroTokens: 1024, // a micro-batch computes once what its runs begin with: the long prompt
	}
	if e.backend, err = local.Open(ctx, opts); err != nil {
		return nil, errors.Join(err, e.world.Close())
	}
	if err := e.model.Register(ctx, e.backend); err != nil {
		return nil, errors.Join(err, e.backend.Close(), e.world.Close())
	}
	return e, nil
}

func (e *experiment) close() error { return errors.Join(e.backend.Close(), e.world.Close()) }

// train makes the steps that are left and returns the last mean reward on held-out questions.
func (e *experiment) train(ctx context.Context, last float64) (float64, error) {
	var questions []*world.Question
	for i := range e.world.Train {
		questions = append(questions, &e.world.Train[i])
	}
	opts := &art.BatchOptions{Size: *batch, Epochs: -1, Seed: *seed, Start: e.model.Step()}
	for b := range art.Batches(questions, opts) {
		if b.Step >= *steps {
			break
		}
		start := time.Now()
		groups, err := art.GatherGroups(ctx, b.Items, by(sampled(e.model, nil), begin()), &art.GatherOptions{
			GroupSize: *group, Concurrency: concurrency, Seed: uint64(b.Step), Events: line,
		})
		if err != nil {
			return 0, err
		}
		result, err := e.model.Train(ctx, groups, &art.TrainConfig{LearningRate: *rate})
		if err != nil {
			return 0, err
		}
		if err := e.model.Log(ctx, "train", groups, result.Metrics); err != nil {
			return 0, err
		}
		m := art.Metrics(groups...)
		fmt.Printf("step %3d  reward %5.2f  right %3.0f%%  near %3.0f%%  ran %3.0f%%  groups %d of %d  entropy %.2f  "+
			"tokens %3.0f  %v\n", b.Step, m["reward"], 100*m["right"], 100*m["near"], 100*m["ran"],
			int(result.Metrics["data/groups_trainable"]), len(groups), result.Metrics["loss/entropy"], m["tokens"],
			time.Since(start).Round(time.Second))
		if e.due() {
			if last, err = e.evaluate(ctx); err != nil {
				return 0, err
			}
		}
	}
	return last, nil
}

// demonstrate trains the model on runs of the careless agent: they show what a query is, and not which conventions
// hold. None is about a line of business that is held out.
func (e *experiment) demonstrate(ctx context.Context) error {
	var questions []world.Question
	for len(questions) < *demos {
		questions = append(questions, e.world.Train[:min(*demos-len(questions), len(e.world.Train))]...)
	}
	shown, err := art.Gather(ctx, questions, func(ctx context.Context, q world.Question) (*art.Trajectory, error) {
		return answer(ctx, careless(&q, art.Rand(ctx)), begin(), &q)
	}, &art.GatherOptions{Seed: *seed})
	if err != nil {
		return err
	}
	_, err = e.model.TrainSFT(ctx, shown.Trajectories, &art.SFTConfig{
		LearningRate: 2e-3, BatchSize: 4, Epochs: 3, Decay: new(0.02), Seed: *seed,
	})
	return err
}
