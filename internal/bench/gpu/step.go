package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/model"
)

// repliesOfPrompt is the number of replies to each prompt of a step of GRPO.
const repliesOfPrompt = 8

// grpo makes whole steps: batch sequences, 8 of each prompt, of as many tokens as their prompt; then one update.
func (s *subject) grpo() error {
	a, err := adapterOf(s.config)
	if err != nil {
		return err
	}
	e, err := s.engine(2*s.tokens+1, s.steps)
	if err != nil {
		return err
	}
	defer e.Close()
	update, call := s.trains(a, 8*1024, 1), 0
	return s.report(work{job: "grpo", tokens: s.batch * s.tokens, passes: 1, reads: float64(s.tokens)}, func() error {
		start := time.Now()
		loaded, err := e.NewAdapter(a)
		if err != nil {
			return err
		}
		call++
		batch, err := s.rollouts(e, loaded, call)
		if err != nil {
			return err
		}
		sampled := time.Since(start)
		if err := update(batch, grpo.PolicyLoss{Kind: grpo.PPO}); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "gpu: step: %.2f s of rollouts, %.2f s of training\n",
			sampled.Seconds(), (time.Since(start) - sampled).Seconds())
		return nil
	})
}

// rollouts samples sequences for prompts that are new in each call.
func (s *subject) rollouts(e *engine.Engine, a *engine.Adapter, call int) ([]grpo.Sequence, error) {
	batch, errs := make([]grpo.Sequence, s.batch), make([]error, s.batch)
	var wg sync.WaitGroup
	for i := range batch {
		wg.Go(func() {
			prompt := s.ids(s.tokens, 1000*call+i/repliesOfPrompt)
			r, err := e.Complete(context.Background(), engine.Request{
				Prompt: prompt, MaxTokens: s.tokens, Seed: uint64(i), Adapter: a,
				Sampling: model.Sampling{Temperature: 1, TopP: 1},
			})
			if err != nil {
				errs[i] = err
				return
			}
			batch[i] = sequence(append(prompt, r.IDs...), s.tokens, i)
			copy(batch[i].Logprobs[s.tokens:], r.Logprobs)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return batch, nil
}
