package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
)

// repliesOfPrompt is the number of replies to each prompt of a step of GRPO.
const repliesOfPrompt = 8

// step is what a step of GRPO was made of.
type step struct {
	rollouts, training float64 // seconds; rollouts include the upload of the adapter
	gap                trainer.Difference
}

// stepShape says how many tokens a step has.
type stepShape struct {
	prompt, reply int
	microTokens   int // of a micro-batch
}

// grpo makes whole steps: batch sequences, 8 of each prompt, of as many tokens as their prompt; then one update.
func (s *subject) grpo() error {
	shape := stepShape{prompt: s.tokens, reply: s.tokens, microTokens: 8 * 1024}
	s.tokens *= 2
	return s.stepsOf("grpo", shape)
}

// gap makes the same steps with the tokens of a bucket, half of them a prompt, for the gap of sampler and trainer. Its
// micro-batches are half as large, so that several of these jobs fit on a GPU in float32.
func (s *subject) gap() error {
	return s.stepsOf("gap", stepShape{prompt: s.tokens / 2, reply: s.tokens - s.tokens/2, microTokens: 4 * 1024})
}

func (s *subject) stepsOf(job string, shape stepShape) error {
	a, err := adapterOf(s.config)
	if err != nil {
		return err
	}
	disturb(a)
	e, err := s.pool(shape.prompt + shape.reply + 1)
	if err != nil {
		return err
	}
	defer e.Close()
	update, call, last := s.trains(a, shape.microTokens, 1), 0, step{}
	w := work{job: job, tokens: s.batch * shape.reply, prompt: shape.prompt, step: &last}
	return s.report(w, func() error {
		start := time.Now()
		loaded, err := e.NewAdapter(a)
		if err != nil {
			return err
		}
		call++
		batch, err := s.rollouts(e, loaded, shape, call)
		if err != nil {
			return err
		}
		sampled := time.Since(start)
		report, err := update(batch, grpo.PolicyLoss{Loss: credit.PPO})
		if err != nil {
			return err
		}
		last = step{sampled.Seconds(), (time.Since(start) - sampled).Seconds(), report.Gap}
		return nil
	})
}

// disturb gives an adapter that changes nothing small random numbers, so that the gap has its part.
func disturb(a *lora.Adapter) {
	rng := rand.New(rand.NewPCG(1, 3))
	for _, l := range a.Layers() {
		for i := range l.B {
			l.B[i] = float32(0.02 * rng.NormFloat64())
		}
	}
}

// pool opens an engine on each device, which share the sequences.
func (s *subject) pool(context int) (*engine.Pool, error) {
	var list []*engine.Engine
	for _, on := range s.all {
		e, err := s.engine(on, (s.batch+len(s.all)-1)/len(s.all), context)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return engine.NewPool(list...), nil
}

// rollouts samples sequences for prompts that are new in each call.
func (s *subject) rollouts(
	e *engine.Pool, a *engine.Adapter, shape stepShape, call int,
) ([]grpo.Sequence, error) {
	batch, errs := make([]grpo.Sequence, s.batch), make([]error, s.batch)
	var wg sync.WaitGroup
	for i := range batch {
		wg.Go(func() {
			prompt := s.ids(shape.prompt, 1000*call+i/repliesOfPrompt)
			r, err := e.Complete(context.Background(), engine.Request{
				Prompt: prompt, MaxTokens: shape.reply, Seed: uint64(i), Adapter: a,
				Sampling: sampling.Settings{Temperature: 1, TopP: 1},
			})
			if err != nil {
				errs[i] = err
				return
			}
			batch[i] = sequence(append(prompt, r.IDs...), shape.prompt, i)
			copy(batch[i].Logprobs[shape.prompt:], r.Logprobs)
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
