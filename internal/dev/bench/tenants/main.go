// Command tenants measures what it costs to train through a server, which many clients share:
//
//	go run ./internal/dev/bench/tenants                          # the built-in model
//	go run ./internal/dev/bench/tenants -model DIR -clients 4    # a folder with a tokenizer
//
// The server is a process of its own and speaks the Tinker protocol; clients are goroutines with backend/tinker.
// Measured are
//
//   - a GRPO step in process and through the server, in turns: the same rollouts, groups and adapters,
//   - one client alone and several at once: steps a second of all, of the slowest and of the fastest, and memory,
//   - the same runs in a process each, in place of one server for all: time and memory.
//
// Processor time counts the server as well. Memory is the most that was ever resident. It needs Linux.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/goart-dev/art"
)

var (
	base      = flag.String("model", "tiny", "base model: tiny, or a folder with weights and tokenizer")
	tokenizer = flag.String("tokenizer", "", "folder with the tokenizer; empty is that of -model")
	clients   = flag.Int("clients", 8, "clients at once, and processes at once")
	steps     = flag.Int("steps", 4, "steps of each client and process")
	pairs     = flag.Int("pairs", 5, "steps in process and through the server, in turns; 0 leaves them out")
	groups    = flag.Int("groups", 4, "groups of a step")
	size      = flag.Int("size", 8, "replies of a group")
	tokens    = flag.Int("tokens", 32, "most tokens of a reply")
	length    = flag.Int("context", 256, "tokens of the context")
	dir       = flag.String("dir", "", "of the runs of a child")
	isServer  = flag.Bool("child", false, "be the server of the process that started this one")
	address   = flag.String("addr", "127.0.0.1:0", "of the server")
	isAlone   = flag.Bool("alone", false, "be one of the processes that train a run each")
)

func main() {
	flag.Parse()
	ctx := context.Background()
	switch {
	case *isServer:
		check(serve(ctx))
	case *isAlone:
		check(alone(ctx))
	default:
		check(measure(ctx))
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// measure measures all of it, and prints it.
func measure(ctx context.Context) error {
	temporary, err := os.MkdirTemp("", "tenants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	*dir = temporary
	if *pairs > 0 {
		if err := compareSteps(ctx); err != nil {
			return err
		}
	}
	all, err := compareClients(ctx)
	if err != nil {
		return err
	}
	return compareProcesses(ctx, all)
}

// compareSteps makes steps in process and through the server, in turns.
func compareSteps(ctx context.Context) error {
	s, err := startServer(ctx, "pairs")
	if err != nil {
		return err
	}
	defer s.Close()
	b, err := openLocal(ctx, "here")
	if err != nil {
		return err
	}
	defer b.Close()
	here, err := register(ctx, b, "here")
	if err != nil {
		return err
	}
	there, c, err := connect(ctx, s, "there")
	if err != nil {
		return err
	}
	defer c.Close()
	var own, remote []spent
	for n := range *pairs + 1 { // the first warms up
		x, err := step(ctx, here, n, nil)
		if err != nil {
			return err
		}
		y, err := step(ctx, there, n, s)
		if err != nil {
			return err
		}
		if n > 0 {
			own, remote = append(own, x), append(remote, y)
		}
	}
	fmt.Printf("%s, %d groups of %d replies of up to %d tokens\n", *base, *groups, *size, *tokens)
	for _, part := range []struct {
		name string
		of   func(spent) time.Duration
	}{
		{"rollouts", func(x spent) time.Duration { return x.rollouts }},
		{"training", func(x spent) time.Duration { return x.training }},
		{"step", func(x spent) time.Duration { return x.rollouts + x.training }},
		{"processor time: rollouts", func(x spent) time.Duration { return x.rolloutsCPU }},
		{"processor time: training", func(x spent) time.Duration { return x.trainingCPU }},
	} {
		ratios := make([]float64, len(own))
		for i := range own {
			ratios[i] = part.of(remote[i]).Seconds() / part.of(own[i]).Seconds()
		}
		fmt.Printf("  %-26s in process %8.3f s, through the server %8.3f s, ratio %s\n", part.name,
			median(seconds(own, part.of)), median(seconds(remote, part.of)), spread(ratios))
	}
	return nil
}

// compareClients lets one client train alone, and then all at once.
func compareClients(ctx context.Context) (all outcome, err error) {
	one, err := trainClients(ctx, 1)
	if err != nil {
		return all, err
	}
	if all, err = trainClients(ctx, *clients); err != nil {
		return all, err
	}
	fmt.Printf("1 client: %s\n%d clients: %s\n", one, *clients, all)
	fmt.Printf("  throughput %.2f of that of one, slowest client %.2f of the fastest\n", all.rate()/one.rate(),
		slices.Min(all.rates)/slices.Max(all.rates))
	return all, nil
}

// compareProcesses trains as many runs in a process each as clients have trained in one server.
func compareProcesses(ctx context.Context, server outcome) error {
	processes, err := trainProcesses(ctx, *clients)
	if err != nil {
		return err
	}
	fmt.Printf("%d runs in one server: %s\n%d runs in a process each: %s\n", *clients, server, *clients, processes)
	fmt.Printf("  the server takes %.2f of the time and %.2f of the memory\n",
		server.took.Seconds()/processes.took.Seconds(), float64(server.memory)/float64(processes.memory))
	return nil
}

// seconds are the durations of a part of each step.
func seconds(list []spent, of func(spent) time.Duration) []float64 {
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = of(x).Seconds()
	}
	return out
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// spread is the median of a list with its least and greatest value.
func spread(list []float64) string {
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(list), slices.Min(list), slices.Max(list))
}

// register makes a model that is trained.
func register(ctx context.Context, b art.Backend, name string) (*art.Model, error) {
	m := art.NewModel(name, &art.ModelOptions{
		Project: "tenants", Base: *base, LoRA: art.LoRA{Rank: 8, Alpha: 32}, Chat: art.ChatOptions{MaxTokens: tokens},
	})
	return m, m.Register(ctx, b)
}
