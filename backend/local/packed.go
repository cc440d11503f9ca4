package local

import (
	"context"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/internal/trainset"
)

// Packed returns how the update from a stored step to the next one was computed: for each optimizer step of its first
// epoch the micro-batches, in their order. dir is the folder of the run, in which nothing is changed. Errors are those
// of [Backend.Replay].
func (b *Backend) Packed(ctx context.Context, dir string, step int) ([][]*grpo.MicroBatch, error) {
	s, err := b.storedUpdate(ctx, dir, step)
	if err != nil {
		return nil, err
	}
	opts := b.trainerOptions()
	opts.MicroTokens, opts.Narrow = s.record.MicroTokens, s.record.Narrow
	batch, run := b.recorded(s, step)
	return trainer.New(s.entry.policy.target(s.entry.base), opts).Packed(batch, run)
}

// recorded returns the sequences of an update and how they are trained on.
func (b *Backend) recorded(s *storedUpdate, step int) ([]grpo.Sequence, trainer.Run) {
	e, record := s.entry, s.record
	switch {
	case record.SFT != nil:
		var list []*art.Trajectory
		for _, g := range s.groups {
			list = append(list, g.Trajectories...)
		}
		batch := trainset.FromConversations(e.template, list, record.SFT.Turns, record.Context).Sequences
		return batch, sftRun(record.SFT, max(1, len(batch)))
	case record.DPO != nil:
		batch := trainset.FromPreferences(e.template, storedPairs(s.groups), record.Context).Sequences
		return batch, dpoRun(record.DPO, max(1, len(batch)/2))
	}
	batch := trainset.FromGroups(s.groups, record.Train, step, record.Context, e.base.config.VocabSize).Sequences
	return batch, policyRun(record.Train, b.lossOf(record.Train), trainset.Seed(s.about.Seed, step+1))
}
