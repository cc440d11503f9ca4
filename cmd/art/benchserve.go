package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"
)

// serve measures agents that call the model over HTTP, each in a conversation of token ids that grows: they share the
// beginning, and each turn adds some tokens of the agent and some of the model.
func (o *modelBench) serve(name string, stderr io.Writer, tell func(modelResult) error) error {
	if o.agents < 1 || o.turns < 1 || o.new < 1 || o.tokens < 1 || o.system < 1 {
		return badUsage("--agents, --turns, --new, --tokens, --system: want at least 1")
	}
	slots := o.slots
	if slots == 0 {
		slots = o.agents
	}
	b, m, end, err := o.open(name, slots, o.system+o.turns*(o.new+o.tokens), stderr)
	if err != nil {
		return err
	}
	defer end()
	ids, err := vocabulary(m)
	if err != nil {
		return err
	}
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
