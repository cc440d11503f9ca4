package local

import (
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/model"
)

// book chooses the slots, the context and the tokens of the cache of a base model, and books the memory that it takes:
// see [plan.Device.Book]. Impossible options, and those that do not fit, are [art.ErrInvalid].
func (b *Backend) book(c *model.Config) (plan.Booking, error) {
	want := b.opts
	if want.Context > c.MaxPositions || want.Context == 1 {
		err := fmt.Errorf("a context of %d tokens, where the model has 2 to %d", want.Context, c.MaxPositions)
		return plan.Booking{}, memoryError(err, "change Context of local.Options")
	}
	if want.CacheTokens != 0 && want.CacheTokens < max(2, want.Context) {
		err := fmt.Errorf("a cache of %d tokens, for requests of up to %d", want.CacheTokens, max(2, want.Context))
		return plan.Booking{}, memoryError(err, "raise CacheTokens of local.Options, or lower Context")
	}
	p, ok := b.memory.Book(plan.Sampling{
		Config: c, Slots: want.Slots, Context: want.Context, CacheTokens: want.CacheTokens,
		Matrices: b.matrices, CacheType: cacheTypes[b.cacheType(c)],
	}, plan.Sizes{MicroTokens: want.MicroTokens, Recompute: want.Recompute, Narrow: want.MicroTokens > 0})
	if ok {
		return p, nil
	}
	have := fmt.Sprintf("%s are free", gigabytes(p.Room.Bytes))
	if !p.Known {
		have = "that is more than any machine has"
	}
	if p.Others > 0 {
		have += fmt.Sprintf(", and %s are planned for other base models", gigabytes(p.Others))
	}
	err := fmt.Errorf("%s, a context of %d and a cache of %d tokens take %s of memory, with %s for the weights and "+
		"%s for keys and values; %s", quantity.Of(p.Slots, "slot"), p.Context, p.CacheTokens, gigabytes(p.Least()),
		gigabytes(p.Weights), gigabytes(p.Cache), have)
	hint := "lower Slots, Context and CacheTokens of local.Options, use Weights \"bfloat16\", or a machine with more " +
		"memory"
	if b.memory.Profile.OwnMemory {
		hint += "; XLA takes three quarters of a GPU: memory_fraction=0.95 behind the name of the device gives more"
	}
	return p, memoryError(err, hint)
}

func memoryError(err error, hint string) error {
	return &art.Error{Op: "register", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err), Hint: hint}
}

// gigabytes formats a size.
func gigabytes(bytes float64) string { return fmt.Sprintf("%.2f GiB", bytes/(1<<30)) }

// checkAdapter refuses an adapter whose copies in training do not fit into free memory.
func (b *Backend) checkAdapter(c *model.Config, params float64) error {
	if takes, free, ok := b.memory.Holds(plan.Training{Config: c, Params: params}); !ok {
		return fmt.Errorf("an adapter of %.0f parameters takes %s in training; %s are free: lower the rank",
			params, gigabytes(takes), gigabytes(free))
	}
	return nil
}

// fit chooses how much memory the training of sequences takes, see [Options].Recompute, and refuses those of which one
// alone does not fit into free memory, before anything is computed. Where the free memory is not known, nothing is
// lowered and nothing refused. On a device with memory of its own nothing is refused either: what it compiles may take
// less than is estimated, and where it does not, the device's error ends neither the process nor the run.
func (b *Backend) fit(op string, e *entry, sequences []grpo.Sequence) error {
	longest := 0
	for i := range sequences {
		longest = max(longest, sequences[i].NumInputs())
	}
	t := e.learner(b)
	before := t.Sizes()
	takes, free, ok := b.memory.Fit(func(bytes float64) (takes float64, lowered, ok bool) {
		takes, ok = t.Fit(longest, bytes)
		return takes, t.Lowered(), ok
	})
	if !ok {
		hint := "leave it out, or make it shorter: lower MaxTokens, or Context of local.Options; art model inspect tells " +
			"what lengths take"
		if b.opts.MicroTokens > 0 {
			hint += "; lower MicroTokens of local.Options"
		}
		return &art.Error{
			Op: op, Err: fmt.Errorf("%w: a sequence of %d tokens takes about %s, and %s are free", art.ErrInvalid, longest,
				gigabytes(takes), gigabytes(free)), Hint: hint,
		}
	}
	if now := t.Sizes(); now != before {
		b.opts.Logger.Info("memory of the training", "op", op, "bytes", int64(takes), "recompute", now.Recompute,
			"micro_tokens", now.MicroTokens, "narrow", now.Narrow, "workers", now.Workers)
	}
	return nil
}
