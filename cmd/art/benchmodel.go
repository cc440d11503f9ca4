package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/local"
)

// modelBench measures a model on the CPU device, by what a program would call: each request has a prompt of random
// token ids, and samples at temperature 1 tokens that no end token cuts.
type modelBench struct {
	requests, prompts string // lists of numbers
	tokens, repeat    int
	slots             int // at least as many as requests
	weights           string
	shared            bool // one prompt for all requests

	agents, turns, system, new int // of serve
}

func (o *modelBench) flags(flags *flag.FlagSet) {
	flags.StringVar(&o.requests, "requests", "1", "`numbers` of requests at once, with commas (decode, prefill)")
	flags.StringVar(&o.prompts, "prompt", "512", "`lengths` of prompts in tokens, with commas (decode, prefill)")
	flags.IntVar(&o.tokens, "tokens", 50, "`number` of tokens that each request samples (decode, serve)")
	flags.IntVar(&o.repeat, "repeat", 3, "`times` to measure after one to warm up; the best counts (decode, prefill)")
	flags.IntVar(&o.slots, "slots", 0, "`number` of replies at once; 0: all of them")
	flags.StringVar(&o.weights, "weights", "float32", "`type` of matrices: float32 or bfloat16")
	flags.BoolVar(&o.shared, "shared", false, "all requests have the same prompt (decode, prefill)")
	flags.IntVar(&o.agents, "agents", 64, "`number` of agents (serve)")
	flags.IntVar(&o.turns, "turns", 10, "`number` of turns of each (serve)")
	flags.IntVar(&o.system, "system", 400, "`tokens` that all agents begin with (serve)")
	flags.IntVar(&o.new, "new", 50, "`tokens` that a turn adds to the prompt (serve)")
}

// modelResult is one measurement: the best of the repetitions.
type modelResult struct {
	Name     string `json:"name"`
	Requests int    `json:"requests"` // at once
	Prompt   int    `json:"prompt_tokens"`
	Tokens   int    `json:"tokens"` // sampled by each request
	Runs     int    `json:"runs"`
	// Rate is tokens of all requests a second: those sampled after the first of each (decode), or those of prompts
	// (prefill). Turns is turns of agents a second (serve).
	Rate  float64 `json:"tokens_per_s,omitempty"`
	Turns float64 `json:"turns_per_s,omitempty"`
	// First is the time until the last of the requests had its first token; Seconds that and the time of all other tokens.
	First   float64 `json:"first_token_s,omitempty"`
	Seconds float64 `json:"seconds"`
	Cached  int     `json:"cached_tokens"` // tokens of prompts that were not computed
}

// open opens a model with a KV cache for so many tokens a request.
func (o *modelBench) open(
	name string, slots, tokens int, stderr io.Writer,
) (*local.Backend, *art.Model, func(), error) {
	s, err := find(name)
	if err != nil {
		return nil, nil, nil, err
	}
	dir, err := os.MkdirTemp("", "art-")
	if err != nil {
		return nil, nil, nil, err
	}
	b, err := local.Open(context.Background(), &local.Options{
		Dir: dir, Slots: slots, Context: tokens, Weights: o.weights, Progress: stderr,
	})
	if err != nil {
		return nil, nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	end := func() { _ = errors.Join(b.Close(), os.RemoveAll(dir)) } // nothing is kept
	m := art.NewModel("bench", &art.ModelOptions{Base: s.path, Adapter: s.adapter, Frozen: s.adapter == ""})
	if err := m.Register(context.Background(), b); err != nil {
		end()
		return nil, nil, nil, err
	}
	return b, m, end, nil
}

// countList reads a list such as 1,16.
func countList(flag, text string) (list []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return nil, badUsage("--%s %s: want numbers above 0, separated by commas", flag, text)
		}
		list = append(list, n)
	}
	return list, nil
}

// decode measures how fast requests sample at the same time.
func (o *modelBench) decode(name string, stderr io.Writer, tell func(modelResult) error) error {
	requests, err := countList("requests", o.requests)
	if err != nil {
		return err
	}
	prompts, err := countList("prompt", o.prompts)
	if err != nil {
		return err
	}
	return o.measure(name, requests, prompts, "decode", stderr, tell)
}

// prefill measures how fast prompts are computed: one token is sampled.
func (o *modelBench) prefill(name string, stderr io.Writer, tell func(modelResult) error) error {
	prompts, err := countList("prompt", o.prompts)
	if err != nil {
		return err
	}
	one := *o
	one.tokens = 1
	requests, err := countList("requests", o.requests)
	if err != nil {
		return err
	}
	return one.measure(name, requests, prompts, "prefill", stderr, tell)
}

// measure measures each number of requests with each prompt.
func (o *modelBench) measure(
	name string, requests, prompts []int, kind string, stderr io.Writer, tell func(modelResult) error,
) error {
	if o.repeat < 1 || o.tokens < 1 || o.tokens == 1 && kind == "decode" {
		return badUsage("--tokens %d, --repeat %d: want at least 1, and 2 tokens for decode", o.tokens, o.repeat)
	}
	slots := max(o.slots, slices.Max(requests))
	_, m, end, err := o.open(name, slots, slices.Max(prompts)+o.tokens, stderr)
	if err != nil {
		return err
	}
	defer end()
	ids, err := vocabulary(m)
	if err != nil {
		return err
	}
	for _, n := range requests {
		for _, length := range prompts {
			best, err := o.best(m, ids, n, length)
			if err != nil {
				return err
			}
			best.Name = fmt.Sprintf("%s/requests=%d/prompt=%d", kind, n, length)
			if best.Rate = float64(n*length-best.Cached) / best.First; kind == "decode" {
				best.Rate = float64(n*(o.tokens-1)) / (best.Seconds - best.First)
			}
			if err := tell(best); err != nil {
				return err
			}
		}
	}
	return nil
}

// vocabulary returns the number of ids that prompts may have. The last ids of a vocabulary are special tokens, or none.
func vocabulary(m *art.Model) (int, error) {
	tokenizer, ok := m.Backend().(driver.Tokenizer)
	if !ok {
		return 0, fmt.Errorf("the backend has no tokenizer")
	}
	n := 0
	for step := 1 << 20; step > 0; step /= 2 {
		if _, err := tokenizer.Decode(context.Background(), m, []int32{int32(n + step)}); err == nil {
			n += step
		}
	}
	return max(n*9/10, 1), nil
}

// best measures n requests some times, after one that warms up, and returns the fastest.
func (o *modelBench) best(m *art.Model, ids, n, length int) (best modelResult, err error) {
	rng := rand.New(rand.NewPCG(1, uint64(length)))
	for i := range o.repeat + 1 {
		r, err := o.requestsAtOnce(m, randomPrompts(rng, n, length, ids, o.shared))
		if err != nil {
			return best, err
		}
		if i == 1 || i > 1 && r.Seconds < best.Seconds {
			best = r
		}
	}
	best.Requests, best.Prompt, best.Tokens, best.Runs = n, length, o.tokens, o.repeat
	return best, nil
}

// requestsAtOnce measures the first token of all prompts, and then, with these in the cache, the tokens that follow: in
// one run the prompts that are computed first would be answered while others are computed.
func (o *modelBench) requestsAtOnce(m *art.Model, prompts [][]int32) (r modelResult, err error) {
	r.First, r.Cached, err = sample(m, prompts, 1)
	if r.Seconds = r.First; err != nil || o.tokens == 1 {
		return r, err
	}
	all, _, err := sample(m, prompts, o.tokens)
	one := all
	for err == nil && one >= all { // where something else held the machine up during the first token, it is measured again
		one, _, err = sample(m, prompts, 1)
	}
	r.Seconds += all - one
	return r, err
}

// randomPrompts returns n prompts: all different, or n times the same.
func randomPrompts(rng *rand.Rand, n, length, ids int, shared bool) [][]int32 {
	prompts := make([][]int32, n)
	for i := range prompts {
		if shared && i > 0 {
			prompts[i] = prompts[0]
			continue
		}
		for range length {
			prompts[i] = append(prompts[i], rng.Int32N(int32(ids)))
		}
	}
	return prompts
}

// sample returns the time in which requests that begin together sample so many tokens each, and how many tokens of
// their prompts were cached.
func sample(m *art.Model, prompts [][]int32, tokens int) (seconds float64, cached int, err error) {
	began := time.Now()
	opts := &art.ChatOptions{MaxTokens: &tokens, MinTokens: &tokens}
	replies, err := m.SampleN(context.Background(), prompts, 1, opts, nil)
	seconds = time.Since(began).Seconds()
	for _, reply := range replies {
		cached += reply.Usage.CachedTokens
		if got := reply.Usage.CompletionTokens; got != tokens {
			return seconds, cached, fmt.Errorf("a reply has %d tokens in place of %d", got, tokens)
		}
	}
	return seconds, cached, err
}

// run measures one of the kinds.
func (o *modelBench) run(kind, name string, stderr io.Writer, tell func(modelResult) error) error {
	switch kind {
	case "decode":
		return o.decode(name, stderr, tell)
	case "prefill":
		return o.prefill(name, stderr, tell)
	case "serve":
		return o.serve(name, stderr, tell)
	}
	return badUsage("%s: want decode, prefill or serve", kind)
}

// row is a line of the table.
func (r modelResult) row() string {
	if r.Turns > 0 {
		return fmt.Sprintf("%-36s %10.2f turns/s  %8.3f s\n", r.Name, r.Turns, r.Seconds)
	}
	return fmt.Sprintf("%-36s %10.1f tokens/s %8.3f s, first token %.3f s\n", r.Name, r.Rate, r.Seconds, r.First)
}
