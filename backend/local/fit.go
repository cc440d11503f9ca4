package local

import (
	"fmt"
	"runtime/debug"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/trainer"
)

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
	takes, free, ok := b.memory.fit(t, longest)
	if !ok {
		return &art.Error{
			Op: op, Err: fmt.Errorf("%w: a sequence of %d tokens takes about %s, and %s are free", art.ErrInvalid, longest,
				gigabytes(takes), gigabytes(free)),
			Hint: b.fitHint(),
		}
	}
	if now := t.Sizes(); now != before {
		b.opts.Logger.Info("memory of the training", "op", op, "bytes", int64(takes), "recompute", now.Recompute,
			"micro_tokens", now.MicroTokens, "narrow", now.Narrow, "workers", now.Workers)
	}
	return nil
}

// fit chooses the sizes of a trainer for sequences of up to some tokens.
func (m *memory) fit(t *trainer.Trainer, longest int) (takes, free float64, ok bool) {
	free, known := m.available(usable)
	if !known {
		return 0, 0, true
	}
	if takes, ok = t.Fit(longest, free); m.profile.OwnMemory || ok && !t.Lowered() {
		return takes, free, true
	}
	debug.FreeOSMemory() // garbage may still be counted as used
	free, _ = m.available(1)
	takes, ok = t.Fit(longest, free)
	return takes, free, ok
}

// available is the memory for a training: a part of what is free, and what the device has for its runs. A device with
// memory of its own keeps what it has once taken, and does not say how much of that is in use: so it is a part of what
// was free in the beginning, without what base models are planned to take, and the same for every training.
func (m *memory) available(part float64) (bytes float64, known bool) {
	free, known := m.free()
	bytes = part * float64(free)
	if m.profile.OwnMemory {
		m.mu.Lock()
		defer m.mu.Unlock()
		return max(0, bytes-m.least), known
	}
	if m.held != nil {
		bytes += float64(m.held())
	}
	return bytes, known
}

// fitHint says what may help a training that does not fit.
func (b *Backend) fitHint() string {
	hint := "leave it out, or make it shorter: lower MaxTokens, or Context of local.Options; art model inspect tells " +
		"what lengths take"
	if b.opts.MicroTokens > 0 {
		hint += "; lower MicroTokens of local.Options"
	}
	return hint
}
