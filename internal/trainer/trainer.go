// Package trainer computes gradients and updates of an adapter, or of all weights, under any [grpo.Loss]. It uses the
// forward pass of package model, the one that samples.
//
// A batch of sequences becomes micro-batches of similar length, padded to few layouts. Several are computed at once
// where that is faster; their gradients are added in a fixed order, so the result does not depend on timing.
package trainer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/lora"
)

// ErrDiverged is wrapped by the error of a run that ended with parameters, moments or logprobs that are not finite, or
// with equal logits for all tokens.
var ErrDiverged = errors.New("trainer: the run diverged")

// Options describe a trainer. Device is required.
type Options struct {
	Device compute.Backend
	// Replicas are further devices that compute micro-batches.
	Replicas []Replica
	// Workers is the number of micro-batches that each device computes at once. Default: the number of CPUs in use, and
	// on a GPU one, whose programs are compiled side by side before.
	Workers int
	// MicroTokens bounds the tokens of a micro-batch, padding included; a single sequence may exceed it. Default: 256 to
	// 4096, as many as have their intermediate values in a gigabyte.
	MicroTokens int
	// Narrow is that of [plan.Sizes].
	Narrow bool
	// FewShapes pads more, so that fewer graphs are compiled: for devices that take seconds to compile one.
	FewShapes bool
	// Recompute keeps of each layer its input alone, and computes it again for its gradient. That takes a fraction of the
	// memory, and the time of one more forward pass. No bit of a result depends on it.
	Recompute bool
	// Alone computes each sequence alone, as if they had nothing in common: for comparisons.
	Alone bool
	// ProgramBytes bounds the memory of compiled graphs that are kept, of which there is one for each layout of a
	// micro-batch. Those that were not used for longest are dropped, and compiled again when they are needed. Default:
	// room for 32 of the graphs of a loss, at most 256 MiB. No bit of a result depends on it.
	ProgramBytes int64
	// Programs are the compiled graphs, which trainers of the same base model and device can share: those with targets of
	// the same layout use the same graphs. ProgramBytes then bounds those of all together. Default: none are shared.
	Programs *graphx.Programs
	// Pause is called after each micro-batch. nil is none.
	Pause Pause
}

// Pause returns when the goroutine that has computed a micro-batch, which took so long, may take the next one. It is
// called by several goroutines.
type Pause func(ctx context.Context, worked time.Duration)

// Trainer holds compiled graphs for one target. It is not safe for concurrent use.
type Trainer struct {
	opts     Options
	target   Target
	plan     plan.Training
	sizes    plan.Sizes
	room     float64          // bytes for micro-batches where layers are computed again for want of memory; else 0
	programs *graphx.Programs // of micro-batches
	updates  *graphx.Programs // of updates, by their AdamW, and of sums and norms of gradients
	norms    *lora.Norms      // made when they are first needed
}

// mostUpdateBytes is enough for the programs of some configurations of AdamW.
const mostUpdateBytes = 64 << 20

// New returns a trainer for target.
func New(target Target, opts Options) *Trainer {
	if opts.ProgramBytes <= 0 {
		opts.ProgramBytes = plan.TrainingPrograms(target.plan.Config)
	}
	if opts.Programs == nil {
		opts.Programs = graphx.NewPrograms(opts.Device, opts.ProgramBytes)
	}
	t := &Trainer{
		opts: opts, target: target, plan: target.plan, programs: opts.Programs,
		updates: graphx.NewPrograms(opts.Device, mostUpdateBytes),
	}
	t.plan.On, t.plan.Alone = graphx.ProfileOf(opts.Device), opts.Alone
	t.plan.On.SlowCompile = opts.FewShapes
	t.sizes = t.plentiful()
	return t
}

// Run describes one or more passes over a batch.
type Run struct {
	Loss        grpo.Loss
	Optimizer   grpo.AdamW
	Rate        func(update int) float64 // learning rate of an update of this run, from 0
	Epochs      int
	MiniBatches int    // optimizer steps of an epoch
	MicroBatch  int    // most sequences of a micro-batch; 0 is as many as MicroTokens allow
	Seed        uint64 // of the order of sequences
	// Progress is called after each optimizer step of a total, with the report so far; nil is none.
	Progress func(total int, soFar Report)
}

// Report says what a run did.
type Report struct {
	Metrics map[string]float64 // those of the loss, over all updates that were not skipped; nil before the first
	First   map[string]float64 // the same of the first one
	Norm    float64            // mean gradient norm before clipping, over updates with a finite one
	Updates int
	Skipped int // updates skipped because their loss or gradient was not finite
	// NotFinite lists the trajectories of sequences whose loss or gradient was not finite.
	NotFinite []int
	// Overflowed lists the trajectories of updates that were skipped though each of their sequences alone has a finite
	// loss and gradient: only the sum has not.
	Overflowed []int
	Computed   int // tokens that gradients were computed of, padding included
	// Recomputed are those of them whose layers were computed again for the gradient.
	Recomputed int

	// Gap is the disagreement of sampler and trainer: the difference between their logprobs, before any update, of all
	// trained tokens that the policy being trained sampled. OffPolicy is the same for tokens that the policy of another
	// step sampled. Both have no tokens when the loss is not of sampled ones.
	Gap, OffPolicy Difference
	// Ratios are the importance ratios of the same tokens, before any update: exp(trainer's logprob - sampler's logprob).
	Ratios []float32
	// Change is how far the run moved the logprobs of a few sequences, see probe. Progress does not have it.
	Change Difference
}

// Train runs over the batch and returns the new state; the old one is left as it is. Sequences are normalised already.
// An update whose loss or gradient is not finite is skipped as a whole. When all are, the state returned is the old one
// itself. A run after which the model computes no finite numbers is an [ErrDiverged].
func (t *Trainer) Train(ctx context.Context, state *State, batch []grpo.Sequence, run Run) (*State, *Report, error) {
	if err := t.check(batch, &run); err != nil {
		return nil, nil, err
	}
	on, err := t.Start(state)
	if err != nil {
		return nil, nil, err
	}
	defer on.Free()
	report, err := on.train(ctx, batch, run)
	if err != nil {
		return nil, nil, err
	}
	next := state
	if report.Updates > 0 {
		if next, err = on.State(); err != nil {
			return nil, nil, err
		}
	}
	if err := next.CheckFinite(); err != nil {
		return nil, nil, err
	}
	return next, report, nil
}

// train runs over a batch. After an error the state is somewhere in between.
func (s *Session) train(ctx context.Context, batch []grpo.Sequence, run Run) (*Report, error) {
	r := newTraining(s, run)
	if err := r.epochs(ctx, batch); err != nil {
		return nil, err
	}
	if r.report.Updates == 0 { // nothing has changed
		return r.report, nil
	}
	return r.report, r.probe.check(ctx, s, &run, r.report)
}

// check refuses what no graph can compute: at a token that has no embedding the device would end the process.
func (t *Trainer) check(batch []grpo.Sequence, run *Run) error {
	if len(batch) == 0 {
		return errors.New("trainer: the batch has no sequences")
	}
	if run.Epochs < 1 || run.MiniBatches < 1 || run.Rate == nil {
		return fmt.Errorf("trainer: %d epochs of %d mini-batches: want at least one of each, and a learning rate",
			run.Epochs, run.MiniBatches)
	}
	if run.Loss == nil {
		return errors.New("trainer: the run has no loss")
	}
	return errors.Join(run.Loss.Validate(), run.Optimizer.Validate(), t.checkBatch(batch, run.Loss),
		checkComplete(batch, run.Loss))
}

// checkBatch refuses sequences that no graph can compute, or that lack what a loss needs.
func (t *Trainer) checkBatch(batch []grpo.Sequence, loss grpo.Loss) error {
	for i := range batch {
		if err := t.target.check(&batch[i]); err != nil {
			return fmt.Errorf("trainer: sequence %d %w", i, err)
		}
		if loss.Spec().Reference && batch[i].Reference == nil {
			return fmt.Errorf("trainer: sequence %d has no reference logprobs, which the loss needs", i)
		}
	}
	return nil
}
