package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	activations       string
	shared            bool // one prompt for all requests

	agents, turns, system, new int // of serve
}

func (o *modelBench) flags(flags *flag.FlagSet) {
	flags.StringVar(&o.requests, "requests", "1", "`numbers` of requests at once, with commas (decode, prefill)")
	flags.StringVar(&o.prompts, "prompt", "512", "`lengths` of prompts in tokens, with commas (decode, prefill)")
	flags.IntVar(&o.tokens, "tokens", 50, "`number` of tokens that each request samples (decode, serve)")
	flags.IntVar(&o.repeat, "repeat", 3, "`times` to measure after one to warm up; the best counts (decode, prefill)")
	flags.IntVar(&o.slots, "slots", 0, "`number` of replies at once; 0: all of them")
	flags.StringVar(&o.weights, "weights", "float32", "`type` of matrices: float32, stored or bfloat16")
	flags.StringVar(&o.activations, "activations", "", activationsUsage)
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

// open opens a model with a KV cache for so many tokens a request, until done. Prompts may have the first ids.
func (o *modelBench) open(
	name string, slots, tokens int, stderr io.Writer,
) (b *local.Backend, m *art.Model, ids int, done func() error, err error) {
	s, err := find(name)
	if err != nil {
		return nil, nil, 0, nil, err
	}
	ctx := context.Background()
	b, done, err = openScratch(ctx, local.Options{
		Slots: slots, Context: tokens, Weights: o.weights, Activations: o.activations, Progress: stderr,
	})
	if err != nil {
		return nil, nil, 0, nil, err
	}
	m = art.NewModel("bench", &art.ModelOptions{Base: s.path, Adapter: s.adapter, Frozen: s.adapter == ""})
	if err = m.Register(ctx, b); err == nil {
		ids, err = vocabulary(m)
	}
	if err != nil {
		return nil, nil, 0, nil, errors.Join(err, done())
	}
	return b, m, ids, done, nil
}

// countList reads the value of a flag such as 1,16, whose numbers are not below least.
func countList(flag, text string, least int) (list []int, err error) {
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < least {
			return nil, badUsage("--%s %s: %q is not one of the numbers of %d or more, separated by commas, that it wants", flag,
				text, part, least)
		}
		list = append(list, n)
	}
	return list, nil
}

// measure measures each number of requests at once with each prompt.
func (o *modelBench) measure(name, kind string, stderr io.Writer, tell func(modelResult) error) error {
	requests, err := countList("requests", o.requests, 1)
	if err != nil {
		return err
	}
	prompts, err := countList("prompt", o.prompts, 1)
	if err != nil {
		return err
	}
	if o.repeat < 1 || o.tokens < 1 || o.tokens == 1 && kind == "decode" {
		return badUsage("--tokens %d, --repeat %d: want at least 1, and 2 tokens for decode", o.tokens, o.repeat)
	}
	slots := max(o.slots, slices.Max(requests))
	_, m, ids, done, err := o.open(name, slots, slices.Max(prompts)+o.tokens, stderr)
	if err != nil {
		return err
	}
	defer func() { _ = done() }()
	for _, n := range requests {
		for _, length := range prompts {
			best, err := o.best(m, ids, n, length)
			if err != nil {
				return err
			}
			best.Name = fmt.Sprintf("%s/requests=%d/prompt=%d", kind, n, length)
			best.Requests, best.Prompt, best.Tokens, best.Runs = n, length, o.tokens, o.repeat
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

// best is the fastest of some runs of n requests with prompts of a length. One more comes before them, which warms up.
func (o *modelBench) best(m *art.Model, ids, n, length int) (best modelResult, err error) {
	rng := rand.New(rand.NewPCG(1, uint64(length)))
	for i := range o.repeat + 1 {
		r, err := o.requestsAtOnce(m, randomPrompts(rng, n, length, ids, o.shared))
		if err != nil {
			return r, err
		}
		if i == 1 || i > 1 && r.Seconds < best.Seconds {
			best = r
		}
	}
	return best, nil
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
		return o.measure(name, "decode", stderr, tell)
	case "prefill":
		one := *o
		one.tokens = 1 // until it is sampled, the prompt is computed
		return one.measure(name, "prefill", stderr, tell)
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

// serve measures agents that call the model over HTTP, each in a conversation of token ids that grows: they share the
// beginning, and each turn adds some tokens of the agent and some of the model.
func (o *modelBench) serve(name string, stderr io.Writer, tell func(modelResult) error) error {
	if o.agents < 1 || o.turns < 1 || o.new < 1 || o.tokens < 1 || o.system < 1 {
		return badUsage("--agents, --turns, --new, --tokens, --system: want at least 1")
	}
	b, _, ids, done, err := o.open(name, cmp.Or(o.slots, o.agents), o.system+o.turns*(o.new+o.tokens), stderr)
	if err != nil {
		return err
	}
	defer func() { _ = done() }()
	handler, err := b.Handler(nil)
	if err != nil {
		return err
	}
	s := httptest.NewServer(handler)
	defer s.Close()
	system := randomPrompts(rand.New(rand.NewPCG(1, 0)), 1, o.system, ids, false)[0]
	began := time.Now()
	errs, cached := make([]error, o.agents), make([]int, o.agents)
	var all sync.WaitGroup
	for i := range o.agents {
		all.Go(func() {
			a := &benchAgent{bench: o, url: s.URL + "/v1/completions", rng: rand.New(rand.NewPCG(2, uint64(i))), ids: ids}
			cached[i], errs[i] = a.play(slices.Clone(system))
		})
	}
	all.Wait()
	r := modelResult{
		Name: fmt.Sprintf("serve/agents=%d/turns=%d", o.agents, o.turns), Requests: o.agents, Prompt: o.system,
		Tokens: o.tokens, Runs: 1, Seconds: time.Since(began).Seconds(),
	}
	for _, n := range cached {
		r.Cached += n
	}
	r.Turns = float64(o.agents*o.turns) / r.Seconds
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return tell(r)
}

// benchAgent is one conversation.
type benchAgent struct {
	bench *modelBench
	url   string
	rng   *rand.Rand
	ids   int
}

// play plays the turns, and returns how many tokens of prompts were found in the cache.
func (a *benchAgent) play(conversation []int32) (cached int, err error) {
	for range a.bench.turns {
		conversation = append(conversation, randomPrompts(a.rng, 1, a.bench.new, a.ids, false)[0]...)
		reply, found, err := a.ask(conversation)
		if err != nil {
			return cached, err
		}
		conversation = append(conversation, reply...)
		cached += found
	}
	return cached, nil
}

// ask asks for one turn.
func (a *benchAgent) ask(prompt []int32) (ids []int32, cached int, err error) {
	body, _ := json.Marshal(map[string]any{ // numbers and strings always encode
		"model": "bench", "prompt": prompt, "max_tokens": a.bench.tokens, "min_tokens": a.bench.tokens,
		"return_token_ids": true, "seed": a.rng.Int32(),
	})
	response, err := http.Post(a.url, "application/json", bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, 0, err
	}
	var read struct {
		Choices []struct {
			TokenIDs []int32 `json:"token_ids"`
		}
		Usage struct {
			Details struct {
				CachedTokens int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.Unmarshal(text, &read); err != nil || len(read.Choices) == 0 {
		return nil, 0, fmt.Errorf("status %d: %s", response.StatusCode, text)
	}
	return read.Choices[0].TokenIDs, read.Usage.Details.CachedTokens, nil
}
