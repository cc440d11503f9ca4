package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/internal/trainset"
	"github.com/goart-dev/art/tokenizer/chat"
)

// Replayed is the result of [Backend.Replay].
type Replayed struct {
	Step int // that was made again
	// Equal is set when every parameter and every moment of the optimizer has the stored bits.
	Equal bool
	// Difference is the largest one between a parameter and the stored one.
	Difference float64
	// Device is that of the run, as the run recorded it. On another kind of device the bits may differ.
	Device string
}

// Replay makes a step of a stored run again: it recomputes the update from step to step+1 from the stored checkpoint,
// trajectories and configuration, and compares the result with checkpoint step+1. On the same kind of device they are
// equal, bit for bit. dir is the folder of the run, in which nothing is changed.
//
// It returns [art.ErrInvalid] when one of the checkpoints was deleted, and [art.ErrUnsupported] for a step that no
// training made, or one of a version that did not record how. A loss of one's own has to be in [Options].Losses.
func (b *Backend) Replay(ctx context.Context, dir string, step int) (*Replayed, error) {
	s, err := b.storedUpdate(ctx, dir, step)
	if err != nil {
		return nil, err
	}
	state, err := b.replay(ctx, s, step)
	if err != nil {
		return nil, err
	}
	_, want, err := readCheckpoint(s.to, s.entry.base)
	if err != nil {
		return nil, checkpointError("replay", s.to, err)
	}
	equal, difference := compareStates(state, want)
	return &Replayed{Step: step + 1, Equal: equal, Difference: difference, Device: s.about.Device}, nil
}

// storedUpdate is an update of a stored run, and what it was made from.
type storedUpdate struct {
	reader *runs.Reader
	about  description
	to     string // folder of the checkpoint that it led to
	record *updateRecord
	groups []*art.TrajectoryGroup
	entry  *entry
}

// storedUpdate reads the update from a step to the next one.
func (b *Backend) storedUpdate(ctx context.Context, dir string, step int) (s *storedUpdate, err error) {
	s = &storedUpdate{}
	if s.reader, err = runs.NewReader(dir); err != nil {
		return nil, err
	}
	if err := s.reader.Model(&s.about); err != nil {
		return nil, err
	}
	from, err := s.reader.Checkpoint(step)
	if err != nil {
		return nil, err
	}
	if s.to, err = s.reader.Checkpoint(step + 1); err != nil {
		return nil, err
	}
	if s.record, err = readUpdate(s.to); err != nil {
		return nil, replayError(step+1, err)
	}
	if s.groups, err = storedGroups(s.reader, step, s.record.Groups); err != nil {
		return nil, err
	}
	s.entry, err = b.replayEntry(ctx, s.about, from, s.record)
	return s, err
}

// replayError is the error of a step without a record that can be read.
func replayError(step int, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: nothing is recorded of how step %d was made", art.ErrUnsupported, step)
		return &art.Error{Op: "replay", Err: err, Hint: "take a step that Train, TrainSFT or TrainDPO of this version made"}
	}
	return &art.Error{Op: "replay", Err: fmt.Errorf("%w: step %d: %w", art.ErrUnsupported, step, err),
		Hint: "if a newer version of art made the step, upgrade: go get github.com/goart-dev/art@latest"}
}

// storedGroups reads the first n groups that were stored of a step.
func storedGroups(reader *runs.Reader, step, n int) ([]*art.TrajectoryGroup, error) {
	if n == 0 {
		return nil, nil
	}
	groups, err := reader.ReadTrajectories("train", step)
	if err != nil {
		return nil, err
	}
	if len(groups) < n {
		err := fmt.Errorf("%w: step %d has %s, and was trained on %d", art.ErrCorrupt, step, quantity.Of(len(groups),
			"stored group"), n)
		return nil, &art.Error{Op: "replay", Err: err}
	}
	return groups[:n], nil
}

// replayEntry loads base model and checkpoint.
func (b *Backend) replayEntry(
	ctx context.Context, about description, from string, record *updateRecord,
) (*entry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // of the digest, if it is not waited for
	at, err := b.locate(ctx, about.Base)
	if err != nil {
		return nil, err
	}
	s, err := b.base(ctx, about.Base, b.heldAs(at.path, about))
	if err != nil {
		return nil, err
	}
	digest, err := at.digest()
	if err != nil {
		return nil, err
	}
	now := description{Base: about.Base, Commit: at.commit, SHA256: digest}
	if !about.sameBase(now) {
		return nil, invalid("replay", "", "the run has the base %s, and here is %s", about.baseText(), now.baseText())
	}
	template, err := s.template.With(chat.Options{ToolFormat: record.ToolFormat})
	if err != nil {
		return nil, &art.Error{Op: "replay", Err: fmt.Errorf("%w: %w", art.ErrUnsupported, err)}
	}
	e := &entry{base: s, template: template}
	if e.policy, e.state, err = readCheckpoint(from, e.base); err != nil {
		return nil, checkpointError("replay", from, err)
	}
	trainerOpts := b.trainerOptions()
	trainerOpts.MicroTokens, trainerOpts.Narrow = record.MicroTokens, record.Narrow
	e.trainer = trainer.New(e.policy.target(s), trainerOpts)
	return e, nil
}

// replay computes the state after an update from a step.
func (b *Backend) replay(ctx context.Context, s *storedUpdate, step int) (state *trainer.State, err error) {
	e, record := s.entry, s.record
	batch, run, err := b.recorded(s, step)
	if err != nil {
		return nil, err
	}
	if record.Train != nil && len(batch) == 0 {
		return e.state, nil
	}
	if err := b.fit("replay", e, batch); err != nil {
		return nil, err
	}
	switch {
	case record.SFT != nil:
		state, _, err = e.trainer.Train(ctx, e.state, batch, run)
	case record.DPO != nil:
		state, _, err = e.prefer(ctx, e.trainer, batch, record.DPO, run)
	default:
		u := policyUpdate{cfg: record.Train, run: run, batch: batch, step: step + 1, checkpoint: s.reader.Checkpoint}
		state, _, err = u.train(ctx, e, e.trainer, map[string]float64{})
	}
	return state, err
}

// recorded returns the sequences of an update and how they are trained on.
func (b *Backend) recorded(s *storedUpdate, step int) ([]grpo.Sequence, trainer.Run, error) {
	e, record := s.entry, s.record
	switch {
	case record.SFT != nil:
		var list []*art.Trajectory
		for _, g := range s.groups {
			list = append(list, g.Trajectories...)
		}
		batch := trainset.FromConversations(e.template, list, record.SFT.Turns, record.Context).Sequences
		return batch, sftRun(record.SFT, max(1, len(batch))), nil
	case record.DPO != nil:
		var pairs []art.Preference // that art.PreferenceGroups made groups of
		for _, g := range s.groups {
			if len(g.Trajectories) == 2 {
				pairs = append(pairs, art.Preference{Chosen: g.Trajectories[0], Rejected: g.Trajectories[1]})
			}
		}
		batch := trainset.FromPreferences(e.template, pairs, record.Context).Sequences
		return batch, dpoRun(record.DPO, max(1, len(batch)/2)), nil
	}
	if err := record.Train.Validate(b.Losses()...); err != nil {
		return nil, trainer.Run{}, err
	}
	batch := trainset.FromGroups(s.groups, record.Train, step, record.Context, e.base.config.VocabSize).Sequences
	return batch, policyRun(record.Train, b.lossOf(record.Train), trainset.Seed(s.about.Seed, step+1)), nil
}

// compareStates reports whether two states have the same bits, and the largest difference of a parameter.
func compareStates(a, b *trainer.State) (equal bool, difference float64) {
	equal = a.Updates == b.Updates && len(a.Params) == len(b.Params)
	for i := range min(len(a.Params), len(b.Params)) {
		equal = equal && sameBits(a.Params[i], b.Params[i]) && sameBits(a.M[i], b.M[i]) && sameBits(a.V[i], b.V[i])
		for j := range min(len(a.Params[i]), len(b.Params[i])) {
			difference = max(difference, math.Abs(float64(a.Params[i][j])-float64(b.Params[i][j])))
		}
	}
	return equal, difference
}

func sameBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

// MicroBatch is what one graph computes of an update: sequences in padded rectangles. Package plot draws it.
type MicroBatch = pack.MicroBatch

// Packed returns how the update from a stored step to the next one was computed: for each optimizer step of its first
// epoch the micro-batches, in their order. dir is the folder of the run, in which nothing is changed. Errors are those
// of [Backend.Replay].
func (b *Backend) Packed(ctx context.Context, dir string, step int) ([][]*MicroBatch, error) {
	s, err := b.storedUpdate(ctx, dir, step)
	if err != nil {
		return nil, err
	}
	batch, run, err := b.recorded(s, step)
	if err != nil {
		return nil, err
	}
	return s.entry.trainer.Packed(batch, run)
}
