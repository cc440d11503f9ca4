package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"time"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/tokenizer/chat"
)

// stage is a part of the training.
type stage struct {
	name     string
	generate func(*rand.Rand) example
	steps    int
	tokens   int     // of a step, at least
	limit    int     // tokens of a chat at most
	rate     float64 // highest learning rate
}

// stages are in the order of the training. Copies come first: they are short, and all else is made of them.
var stages = []stage{
	{"copies", copyText, 80, 8_000, 512, 3e-3},
	{"calls", calls, 2000, 8_000, 1280, 3e-3},
	{"all", generate, 1200, 10_000, positions, 2e-3},
}

// training is what train needs beside the weights.
type training struct {
	template *chat.Template
	file     string // says how far the training is
	stages   []stage
	seed     uint64
	every    int          // number of steps of a stage between two writes of file and weights
	save     func() error // stores the weights
}

// train goes through the stages. The moments of AdamW go on from stage to stage. Every so many steps it writes to a
// file how far it is, and has the weights saved; it begins with what such a file has.
func train(ctx context.Context, w *model.Weights, run training) error {
	device, err := cpu.New(nil)
	if err != nil {
		return err
	}
	at, err := loadProgress(run.file, run.seed, trainer.FullState(w))
	if err != nil {
		return err
	}
	t, start := trainer.New(trainer.FullTarget(w.Config), trainer.Options{Device: device}), time.Now()
	for ; at.Stage < len(run.stages); at.Stage, at.Step = at.Stage+1, 0 {
		s, mean, count := run.stages[at.Stage], 0.0, 0
		for at.Step < s.steps {
			rng := rand.New(rand.NewPCG(run.seed, uint64(at.Stage)<<32|uint64(at.Step)))
			batch, err := s.sequences(run.template, rng)
			if err != nil {
				return err
			}
			next, nll, err := s.update(ctx, t, at.State, batch, at.Step)
			if err != nil {
				return err
			}
			at.State = next
			at.Step, count = at.Step+1, count+1
			mean += (nll - mean) / float64(min(count, 20))
			if at.Step%20 == 0 {
				fmt.Printf("%-6s  step %4d of %d  nll %.4f  %v\n",
					s.name, at.Step, s.steps, mean, time.Since(start).Round(time.Second))
			}
			if at.Step%run.every == 0 {
				if err := errors.Join(at.save(run.file), at.copyTo(w), run.save()); err != nil {
					return err
				}
			}
		}
	}
	return errors.Join(at.copyTo(w), run.save(), os.RemoveAll(run.file))
}

// update makes an optimizer step. It returns the new state and the mean negative log-likelihood of a trained token.
func (s stage) update(
	ctx context.Context, t *trainer.Trainer, state *trainer.State, batch []grpo.Sequence, step int,
) (*trainer.State, float64, error) {
	next, report, err := t.Train(ctx, state, batch, trainer.Run{
		Loss:      grpo.SupervisedLoss{},
		Optimizer: grpo.AdamW{Beta1: 0.9, Beta2: 0.98, Eps: 1e-8, WeightDecay: 0.01, MaxGradNorm: 1},
		Rate:      func(int) float64 { return s.rate * schedule(step, s.steps) },
		Epochs:    1, MiniBatches: 1,
	})
	if err == nil && report.Skipped > 0 {
		err = fmt.Errorf("step %d: the loss or gradient is not finite", step)
	}
	if err != nil {
		return nil, 0, err
	}
	return next, report.Metrics["loss/sft"], nil
}

// schedule is a short warm-up and a cosine decay to a tenth.
func schedule(step, steps int) float64 {
	warmup := max(1, min(20, steps/20))
	if step < warmup {
		return float64(step+1) / float64(warmup)
	}
	x := float64(step-warmup) / float64(max(1, steps-warmup))
	return 0.1 + 0.9*(1+math.Cos(math.Pi*x))/2
}

// sequences tokenises chats until the step has its tokens. One that is too long is replaced by another.
func (s stage) sequences(template *chat.Template, rng *rand.Rand) ([]grpo.Sequence, error) {
	var out []grpo.Sequence
	for left := s.tokens; left > 0; {
		e := s.generate(rng)
		ids, mask, err := template.Target(e.messages, e.tools)
		if err != nil {
			return nil, err
		}
		if len(ids) > s.limit {
			continue
		}
		left -= len(ids)
		out = append(out, grpo.Sequence{
			IDs: ids, Trained: mask, Logprobs: make([]float32, len(ids)), Advantage: 1, Weight: 1, Trajectory: len(out),
		})
	}
	return out, nil
}
