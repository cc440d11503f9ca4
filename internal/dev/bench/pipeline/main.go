// Command pipeline compares art.Pipeline with a loop that gathers and trains in turns, on a task whose rollouts wait
// for a tool:
//
//	go run ./internal/dev/bench/pipeline -latency 50ms -steps 20 -seeds 3
//
// Both train the built-in model to add two digits, with the same groups per step. They alternate, seed by seed. It
// prints steps per hour and the reward of the last quarter of the steps. GOMAXPROCS is that of the process: compare
// with the faster of the loops of one and of two threads.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
)

var (
	latency   = flag.Duration("latency", 50*time.Millisecond, "of the tool, once a rollout")
	steps     = flag.Int("steps", 20, "training steps")
	seeds     = flag.Int("seeds", 1, "so many seeds")
	staleness = flag.Int("staleness", 1, "MaxStaleness of the pipeline")
)

// groups of a step, and rollouts of a group and at once.
const groups, size, concurrency = 8, 8, 64

func main() {
	flag.Parse()
	fmt.Printf("GOMAXPROCS %d, latency %v, %d steps\n", runtime.GOMAXPROCS(0), *latency, *steps)
	for seed := range *seeds {
		loop, pipeline := measure(uint64(seed+1), trainLoop), measure(uint64(seed+1), trainPipeline)
		fmt.Printf("seed %d: loop %s; pipeline %s; ratio %.2f\n", seed+1, loop, pipeline, pipeline.speed/loop.speed)
	}
}

// outcome of a run.
type outcome struct{ speed, reward float64 }

func (o outcome) String() string { return fmt.Sprintf("%.0f steps/h, reward %.3f", o.speed, o.reward) }

// measure trains a model.
func measure(seed uint64, train func(context.Context, *art.Model, []int, uint64)) outcome {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "pipeline")
	check(err)
	defer os.RemoveAll(dir)
	b, err := local.Open(ctx, &local.Options{Dir: dir, Slots: 64, Context: 64})
	check(err)
	defer b.Close()
	m := art.NewModel("adder", &art.ModelOptions{Seed: seed, Chat: art.ChatOptions{MaxTokens: new(8)}})
	check(m.Register(ctx, b))
	sums := rand.New(rand.NewPCG(seed, 0)).Perm(100)
	start := time.Now()
	train(ctx, m, sums, seed)
	took := time.Since(start)
	rows, err := b.History(ctx, m)
	check(err)
	o := outcome{speed: float64(*steps) / took.Hours()}
	last := max(1, *steps/4)
	for step := *steps - last; step < *steps; step++ {
		reward, _ := art.Logged(rows, "train/reward", step)
		o.reward += reward / float64(last)
	}
	return o
}

func config() *art.TrainConfig { return &art.TrainConfig{LearningRate: 2e-3, MaxGradNorm: 1} }

func trainLoop(ctx context.Context, m *art.Model, sums []int, seed uint64) {
	for b := range art.Batches(sums, &art.BatchOptions{Size: groups, Epochs: -1, Seed: seed}) {
		if b.Step == *steps {
			return
		}
		g, err := art.GatherGroups(ctx, b.Items, rollout(m),
			&art.GatherOptions{GroupSize: size, Concurrency: concurrency, Seed: uint64(b.Step)})
		check(err)
		_, err = m.Train(ctx, g, config())
		check(err)
	}
}

func trainPipeline(ctx context.Context, m *art.Model, sums []int, seed uint64) {
	_, err := art.Pipeline(ctx, m, sums, rollout(m), &art.PipelineOptions{
		Steps: *steps, Groups: groups, MaxStaleness: staleness, KeepUntrainable: true, Train: config(),
		Gather: &art.GatherOptions{GroupSize: size, Concurrency: concurrency, Seed: seed},
	})
	check(err)
}

// rollout asks for a sum, after the tool.
func rollout(m *art.Model) func(context.Context, int) (*art.Trajectory, error) {
	return func(ctx context.Context, sum int) (*art.Trajectory, error) {
		time.Sleep(*latency)
		a, b := sum/10, sum%10
		t := art.NewTrajectory(art.System("Reply with a number."), art.User(fmt.Sprintf("%d+%d=", a, b)))
		reply, err := m.Chat(ctx, t, nil)
		if err != nil {
			return nil, err
		}
		text := strings.TrimSpace(reply.Content)
		if _, err := strconv.Atoi(text); err == nil {
			t.Reward = 0.1
		}
		if text == strconv.Itoa(a+b) {
			t.Reward = 1
		}
		return t, nil
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
