// Package trainer computes gradients and updates: of an adapter, or of all weights, under a policy loss or a supervised
// one. It uses the forward pass of package model, the one that samples.
//
// A batch of sequences becomes micro-batches of similar length, padded to few shapes. Several are computed at once; their
// gradients are added in a fixed order, so the result does not depend on timing.
package trainer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/grpo"
)

// ErrNotFinite is wrapped by the error of a run in which no update had a finite gradient.
var ErrNotFinite = errors.New("trainer: no update had a finite gradient")

// ErrDiverged is wrapped by the error of a run that ended with parameters, moments or logprobs that are not finite, or
// with equal logits for all tokens.
var ErrDiverged = errors.New("trainer: the run diverged")

// Options describe a trainer. Device is required.
type Options struct {
	Device compute.Backend
	// Workers is the number of micro-batches that are computed at once. Default: the number of CPUs in use.
	Workers int
	// MicroTokens bounds the tokens of a micro-batch, padding included; one sequence may exceed it. Default: what a gigabyte
	// holds the intermediate values of, from 256 to 4096.
	MicroTokens int
	// FewShapes pads more, so that fewer graphs are compiled: for a device that takes seconds for each.
	FewShapes bool
}

// Trainer holds compiled graphs for one target. It is not safe for concurrent use.
type Trainer struct {
	opts      Options
	target    Target
	gradients map[objective]*graph.Exec
	updates   map[grpo.AdamW]*graph.Exec
	scores    *graph.Exec
}

// New returns a trainer for target.
func New(target Target, opts Options) *Trainer {
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if opts.MicroTokens <= 0 {
		opts.MicroTokens = microTokens(target.config)
	}
	return &Trainer{opts: opts, target: target, gradients: map[objective]*graph.Exec{}, updates: map[grpo.AdamW]*graph.Exec{}}
}

// Run describes a pass, or several, over a batch.
type Run struct {
	Loss        grpo.LossConfig // ignored when Supervised
	Supervised  bool            // negative log-likelihood of the trained tokens
	Optimizer   grpo.AdamW
	Rate        func(update int) float64 // learning rate of an update of this run, from 0
	Epochs      int
	MiniBatches int    // optimizer steps of an epoch
	MicroBatch  int    // most sequences of a micro-batch; 0 is as many as MicroTokens allow
	Seed        uint64 // of the order of sequences
	// Progress is called after each optimizer step of a total, with the report so far; nil is none.
	Progress func(total int, soFar Report)
}

// Report tells what a run did.
type Report struct {
	Sums     grpo.LossSums // over all updates
	First    grpo.LossSums // of the first update
	Norm     float64       // mean gradient norm before clipping, over updates with a finite one
	Updates  int
	Skipped  int // updates left out because their gradient was not finite
	Computed int // tokens that gradients were computed of, padding included

	// Gap is the disagreement of sampler and trainer: their logprobs of all trained tokens that the policy being
	// trained sampled, before any update. OffPolicy is the same of tokens that the policy of another step sampled. Both
	// are of no tokens when Supervised.
	Gap, OffPolicy Difference
	// Change is how far the run moved the logprobs of a few sequences, see probe. Progress is told none.
	Change Difference
}

// Train runs over the batch and returns the new state; the old one is left as it is. Sequences are normalised already.
// A run that ends where the model computes no numbers any more is an [ErrDiverged].
func (t *Trainer) Train(ctx context.Context, state *State, batch []grpo.Sequence, run Run) (*State, *Report, error) {
	if err := t.check(batch, &run); err != nil {
		return nil, nil, err
	}
	on, err := t.reside(state)
	if err != nil {
		return nil, nil, err
	}
	defer on.free()
	report := &Report{}
	probe, err := t.newProbe(ctx, on.params, batch, run.MicroBatch)
	if err != nil {
		return nil, nil, err
	}
	if err := t.epochs(ctx, state, on, batch, &run, report); err != nil {
		return nil, nil, err
	}
	if report.Updates == 0 {
		return nil, nil, fmt.Errorf("%w: of %d", ErrNotFinite, report.Skipped)
	}
	next, err := on.state(state)
	if err == nil {
		err = errors.Join(next.checkFinite(), probe.check(ctx, t, on.params, report))
	}
	if err != nil {
		return nil, nil, err
	}
	return next, report, nil
}

// epochs makes the optimizer steps of a run.
func (t *Trainer) epochs(
	ctx context.Context, state *State, on *resident, batch []grpo.Sequence, run *Run, report *Report,
) error {
	total := run.Epochs * min(run.MiniBatches, len(batch))
	for epoch := range run.Epochs {
		parts := split(batch, run.MiniBatches, rand.New(rand.NewPCG(run.Seed, uint64(epoch))))
		if epoch == 0 && !run.Supervised {
			if err := t.compareLater(ctx, on.params, parts[1:], run.MicroBatch, report); err != nil {
				return err
			}
		}
		for _, part := range parts {
			if err := t.update(ctx, state, on, part, run, report); err != nil {
				return err
			}
			if run.Progress != nil {
				run.Progress(total, *report)
			}
		}
	}
	return nil
}

// check refuses what no graph can compute: the device would end the process at a token that it has no embedding for.
func (t *Trainer) check(batch []grpo.Sequence, run *Run) error {
	if len(batch) == 0 {
		return errors.New("trainer: the batch has no sequences")
	}
	if run.Epochs < 1 || run.MiniBatches < 1 || run.Rate == nil {
		return fmt.Errorf("trainer: %d epochs of %d mini-batches: want at least one of each, and a learning rate", run.Epochs, run.MiniBatches)
	}
	for i := range batch {
		if err := t.target.check(&batch[i]); err != nil {
			return fmt.Errorf("trainer: sequence %d %w", i, err)
		}
	}
	return errors.Join(run.Loss.Validate(), run.Optimizer.Validate())
}

// update makes one optimizer step.
func (t *Trainer) update(ctx context.Context, state *State, on *resident, part []grpo.Sequence, run *Run, report *Report) error {
	grads, sums, err := t.gradient(ctx, on.params, part, run, report)
	if err != nil {
		return err
	}
	n := report.Updates + report.Skipped
	norm, ok, err := t.apply(state, on, grads, run.Optimizer, run.Rate(n))
	if err != nil {
		return err
	}
	if n == 0 {
		report.First = sums
	}
	if !ok {
		report.Skipped++
		return nil
	}
	report.Sums.Add(sums)
	report.Norm += (norm - report.Norm) / float64(report.Updates+1)
	report.Updates++
	return nil
}

// split shuffles a batch and cuts it into n parts whose sizes differ by at most one.
func split(batch []grpo.Sequence, n int, rng *rand.Rand) [][]grpo.Sequence {
	n = min(n, len(batch))
	order := rng.Perm(len(batch))
	parts := make([][]grpo.Sequence, n)
	for i, at := range order {
		parts[i*n/len(order)] = append(parts[i*n/len(order)], batch[at])
	}
	return parts
}
