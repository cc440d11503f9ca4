// Command supervisor trains several agents that work together, in this process: go run ./examples/supervisor
//
// A supervisor reads a question and chooses a worker; that one answers. There are two workers, calc for sums and copy
// for words. The answer is right or not, and that is the reward of both: of the supervisor for its choice, of the
// worker for its words. Supervisor and workers are two models on one base: each has an adapter, and -train says which
// of them learns. What is not trained stays as it is, so that -train supervisor learns to use workers as they are.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"strconv"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/track/terminal"
)

var (
	base  = flag.String("model", "tiny", "base model: a folder, a GGUF file, ORG/NAME on the hub, or tiny")
	seed  = flag.Uint64("seed", 1, "seed of the run")
	steps = flag.Int("steps", 20, "training steps")
	batch = flag.Int("batch", 8, "questions of a step")
	group = flag.Int("group", 16, "runs of a question")
	rate  = flag.Float64("rate", 2e-3, "learning rate")
	dir   = flag.String("dir", ".art", "where runs are stored")
	who   = flag.String("train", "both", "supervisor, workers or both")
	short = flag.Bool("short", false, "8 steps; fail unless more answers are right after them")
)

func main() {
	flag.Parse()
	if *short {
		*steps = 8
	}
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	fmt.Printf("loading %s, then measuring it\n", *base)
	backend, err := local.Open(ctx, &local.Options{Dir: *dir, Slots: 64, Context: 128})
	if err != nil {
		return err
	}
	defer backend.Close()
	t, err := newTeam(ctx, backend)
	if err != nil {
		return err
	}
	before, err := t.evaluate(ctx)
	if err != nil {
		return err
	}
	after, err := t.train(ctx, before)
	if err != nil {
		return err
	}
	if *short && after <= before {
		return fmt.Errorf("they did not learn: %.3f right before, %.3f after", before, after)
	}
	return nil
}

// team is a supervisor and its workers, which share an adapter.
type team struct {
	supervisor, workers         *art.Model
	trainSupervisor, trainWorks bool
	events                      *art.Events
}

func newTeam(ctx context.Context, b art.Backend) (*team, error) {
	t := &team{
		trainSupervisor: *who != "workers", trainWorks: *who != "supervisor",
		events: terminal.New(&terminal.Options{Quiet: true}),
	}
	if *who != "supervisor" && *who != "workers" && *who != "both" {
		return nil, fmt.Errorf("-train is %q, want supervisor, workers or both", *who)
	}
	for name, m := range map[string]**art.Model{"supervisor": &t.supervisor, "workers": &t.workers} {
		*m = art.NewModel(fmt.Sprintf("%s-%s-%d", name, *who, *seed), &art.ModelOptions{
			Project: "supervisor", Base: *base, Seed: *seed, Chat: art.ChatOptions{MaxTokens: new(6)},
		})
		if err := (*m).Register(ctx, b); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// step is how far the training is: that of a model that learns.
func (t *team) step() int {
	if t.trainWorks {
		return t.workers.Step()
	}
	return t.supervisor.Step()
}

// train makes the steps that are left and returns the last share of right answers.
func (t *team) train(ctx context.Context, last float64) (float64, error) {
	opts := &art.BatchOptions{Size: *batch, Epochs: -1, Seed: *seed, Start: t.step()}
	for b := range art.Batches(questions(), opts) {
		if b.Step >= *steps {
			break
		}
		parts := &parts{}
		groups, err := art.GatherGroups(ctx, b.Items, func(ctx context.Context, q question) (*art.Trajectory, error) {
			return t.answer(ctx, q, parts, nil)
		}, &art.GatherOptions{GroupSize: *group, Concurrency: 64, Seed: uint64(b.Step), Events: t.events})
		if err != nil {
			return last, err
		}
		if err := t.learn(ctx, groups, parts); err != nil {
			return last, err
		}
		m := art.Metrics(groups...)
		fmt.Printf("step %2d  right %3.0f%%  right worker %3.0f%%\n", b.Step, 100*m["right"], 100*m["delegated"])
		if b.Step%10 == 9 || b.Step == *steps-1 {
			if last, err = t.evaluate(ctx); err != nil {
				return last, err
			}
		}
	}
	return last, nil
}

// learn trains each model on what it wrote. The workers' step is the last: it decides where a run resumes, so when the
// process ends between the two, the supervisor makes one step more.
func (t *team) learn(ctx context.Context, groups []*art.TrajectoryGroup, p *parts) error {
	cfg := &art.TrainConfig{LearningRate: *rate, MaxGradNorm: 1}
	for _, part := range []struct {
		model  *art.Model
		learns bool
		groups []*art.TrajectoryGroup
	}{{t.supervisor, t.trainSupervisor, groups}, {t.workers, t.trainWorks, p.workers(groups)}} {
		if !part.learns {
			continue
		}
		result, err := part.model.Train(ctx, part.groups, cfg)
		if err != nil {
			return err
		}
		if err := part.model.Log(ctx, "train", part.groups, result.Metrics); err != nil {
			return err
		}
	}
	return nil
}

// evaluate answers all questions greedily and returns the share of right answers.
func (t *team) evaluate(ctx context.Context) (float64, error) {
	g, err := art.Gather(ctx, questions(), func(ctx context.Context, q question) (*art.Trajectory, error) {
		return t.answer(ctx, q, &parts{}, &art.ChatOptions{Temperature: new(0.0)})
	}, &art.GatherOptions{Concurrency: 64, Seed: 1 << 32, Events: t.events})
	if err != nil {
		return 0, err
	}
	m := art.Metrics(g)
	fmt.Printf("greedy at step %d: %.1f%% right, %.1f%% to the right worker\n", t.step(), 100*m["right"],
		100*m["delegated"])
	return m["right"], t.supervisor.Log(ctx, "val", []*art.TrajectoryGroup{g}, nil)
}

// question is what the team is asked, who should answer, and what.
type question struct{ text, worker, answer string }

// prompts of the workers by name.
var prompts = map[string]string{"calc": "Reply with a number.", "copy": "Reply with the word."}

// choices are the workers by what the supervisor replies: words that the built-in model knows.
var choices = map[string]string{"yes": "calc", "no": "copy"}

func questions() []question {
	var list []question
	for i, word := range strings.Fields("red blue cat dog tree sun moon car book fish bird milk") {
		a, b := i%6+1, i/2+1
		list = append(list,
			question{fmt.Sprintf("What is %d + %d?", a, b), "calc", strconv.Itoa(a + b)},
			question{"Say " + word + ".", "copy", word})
	}
	return list
}

// delegate is the system message of the supervisor.
const delegate = "Is it a sum? Reply yes or no."

// answer lets the supervisor name a worker, and that one answer. It returns the supervisor's trajectory, and puts the
// worker's into parts. A reply that is no choice ends it.
func (t *team) answer(ctx context.Context, q question, p *parts, opts *art.ChatOptions) (*art.Trajectory, error) {
	s := art.NewTrajectory(art.System(delegate), art.User(q.text+" yes or no"))
	choice, err := t.supervisor.Chat(ctx, s, opts)
	if err != nil {
		return nil, err
	}
	name := choices[strings.TrimSpace(choice.Content)]
	s.Metrics = map[string]float64{"right": 0, "delegated": one(name == q.worker), "known": one(name != "")}
	s.Reward = 0.1 * s.Metrics["known"]
	if name == "" {
		return s, nil
	}
	w := art.NewTrajectory(art.System(prompts[name]), art.User(q.text))
	reply, err := t.workers.Chat(ctx, w, opts)
	if err != nil {
		return nil, err
	}
	if strings.Trim(reply.Content, " .") == q.answer {
		s.Reward, s.Metrics["right"], w.Reward = 1, 1, 1
	}
	w.Metadata["worker"] = name
	p.Store(s, w)
	return s, nil
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// parts are the trajectories of workers by that of their supervisor. It is safe for concurrent use.
type parts struct{ sync.Map }

// workers returns the groups of the workers. Only answers of one worker to one question can be compared: another one
// had another prompt. A group of the supervisor becomes up to two.
func (p *parts) workers(groups []*art.TrajectoryGroup) []*art.TrajectoryGroup {
	var out []*art.TrajectoryGroup
	for _, g := range groups {
		byName := map[string]*art.TrajectoryGroup{}
		for _, s := range g.Trajectories {
			found, ok := p.Load(s)
			if !ok {
				continue
			}
			w := found.(*art.Trajectory)
			name := w.Metadata["worker"].(string)
			if byName[name] == nil {
				byName[name] = &art.TrajectoryGroup{}
				out = append(out, byName[name])
			}
			byName[name].Trajectories = append(byName[name].Trajectories, w)
		}
	}
	if len(out) == 0 { // nobody was asked: a step that learns nothing
		out = append(out, &art.TrajectoryGroup{})
	}
	return out
}
