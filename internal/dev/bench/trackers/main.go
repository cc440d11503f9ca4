// Command trackers measures what the trackers cost: it trains the built-in model with all of them on, and counts the
// samples of a CPU profile that fall into them.
//
//	go run ./internal/dev/bench/trackers -steps 30
//
// A rollout is a conversation of four sums, eight are a group, and the training is that of examples/tictactoe: PPO of
// three epochs in two mini-batches, LoRA of rank 32. With -epochs 1 there are fewer seconds of training for each
// completion that is tracked: the cost is higher. The services that the trackers send to are a process of their own,
// which takes everything; what sending costs here is counted, with all of net/http, of which the training needs
// nothing. A part of the garbage collector's time is counted too: the share of the trackers in the bytes that are
// allocated. The cost is their time over that of everything else. It is an upper bound: callbacks of no tracker, such
// as the metrics that all of them share, are within it. The command fails when a tracker has lost something.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/grpo/credit"
)

var (
	steps  = flag.Int("steps", 30, "training steps that are measured")
	groups = flag.Int("groups", 8, "groups of a step")
	turns  = flag.Int("turns", 4, "sums of a rollout")
	epochs = flag.Int("epochs", 3, "epochs of a training")
	tokens = flag.Int("tokens", 8, "most tokens of a reply")
	keep   = flag.String("profile", "", "`file` for the CPU profile, for go tool pprof")
	serve  = flag.Bool("serve", false, "be the services, and print their address: of the command's own use")
)

// size of a group, and warmup, the steps before those that are measured: graphs are compiled in them.
const size, warmup = 8, 2

func main() {
	flag.Parse()
	if *serve {
		check(serveAll(os.Stdout))
		return
	}
	check(run(context.Background(), os.Stdout))
}

// run trains, and writes what the trackers cost.
func run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "trackers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	url, stop, err := startServices()
	if err != nil {
		return err
	}
	defer stop()
	all, err := openTrackers(dir, url)
	if err != nil {
		return err
	}
	m, closing, err := open(ctx, dir, all.events)
	if err != nil {
		return err
	}
	defer closing()
	before, cpu, err := measure(ctx, m, all)
	if err != nil {
		return err
	}
	after := allocations()
	used, err := readProfile(cpu)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "GOMAXPROCS %d, %d steps of %d groups of %d, %d turns, replies of at most %d tokens, %d epochs\n",
		runtime.GOMAXPROCS(0), *steps, *groups, size, *turns, *tokens, *epochs)
	report(out, used, before, after)
	return nil
}

// open opens a backend and registers the model.
func open(ctx context.Context, dir string, events *art.Events) (m *art.Model, closing func(), err error) {
	b, err := local.Open(ctx, &local.Options{Dir: dir, Slots: 64, Context: 160, Progress: io.Discard})
	if err != nil {
		return nil, nil, err
	}
	m = art.NewModel("adder", &art.ModelOptions{Project: "bench", Seed: 1, Events: events, LoRA: art.LoRA{Rank: 32},
		Chat: art.ChatOptions{MaxTokens: tokens}})
	return m, func() { check(b.Close()) }, m.Register(ctx, b)
}

// measure trains. It returns what had been allocated before, and the profile of the steps and of closing the trackers.
func measure(ctx context.Context, m *art.Model, all *trackers) (before allocated, cpu []byte, err error) {
	for step := range warmup {
		if err := train(ctx, m, all.events, step); err != nil {
			return allocated{}, nil, err
		}
	}
	before = allocations()
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err != nil {
		return allocated{}, nil, err
	}
	for step := range *steps {
		if err := train(ctx, m, all.events, warmup+step); err != nil {
			pprof.StopCPUProfile()
			return allocated{}, nil, err
		}
	}
	err = all.close() // what waits is sent: it is part of the cost
	pprof.StopCPUProfile()
	if err == nil && *keep != "" {
		err = os.WriteFile(*keep, profile.Bytes(), 0o666)
	}
	return before, profile.Bytes(), err
}

// train gathers the groups of a step, and trains on them.
func train(ctx context.Context, m *art.Model, events *art.Events, step int) error {
	sums := rand.New(rand.NewPCG(1, uint64(step))).Perm(100)[:*groups]
	g, err := art.GatherGroups(ctx, sums, func(ctx context.Context, sum int) (*art.Trajectory, error) {
		return ask(ctx, m, sum)
	}, &art.GatherOptions{GroupSize: size, Concurrency: 64, Seed: uint64(step), Events: events})
	if err != nil {
		return err
	}
	result, err := m.Train(ctx, g, &art.TrainConfig{
		Loss: credit.PPO, LearningRate: 1e-3, Epochs: *epochs, MiniBatches: 2, MaxGradNorm: 1,
	})
	if err != nil {
		return err
	}
	return m.Log(ctx, "train", g, result.Metrics)
}

// ask asks for sums in one conversation. The reward is higher for replies that have them, and for short ones.
func ask(ctx context.Context, m *art.Model, first int) (*art.Trajectory, error) {
	t := art.NewTrajectory(art.System("Reply with a number."))
	for turn := range *turns {
		sum := (first + 7*turn) % 100
		t.Add(art.User(fmt.Sprintf("%d+%d=", sum/10, sum%10)))
		reply, err := m.Chat(ctx, t, nil)
		if err != nil {
			return nil, err
		}
		t.Reward -= float64(len(reply.Content)) / 100
		if strings.Contains(reply.Content, strconv.Itoa(sum/10+sum%10)) {
			t.Reward++
		}
	}
	t.Metrics["length"] = float64(len(t.Messages))
	return t, nil
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
