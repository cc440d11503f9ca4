package local

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/runs"
)

// TestReplay: each training of a run is made again from what is stored, to the same bits: on groups, with several
// updates, with a reference that lags behind, and supervised. Groups that were only logged are no part of it.
func TestReplay(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", &art.ModelOptions{Seed: 5})
	require.NoError(t, m.Register(t.Context(), b))
	gather := func() []*art.TrajectoryGroup {
		groups, err := art.GatherGroups(t.Context(), []string{"7+5=", "2+2="}, twoTurns(m), &art.GatherOptions{GroupSize: 4})
		require.NoError(t, err)
		return groups
	}
	configs := []*art.TrainConfig{
		{LearningRate: 1e-3},
		{LearningRate: 1e-3, Epochs: 2, MiniBatches: 2, Loss: credit.PPO, Scale: credit.ScaleNone},
		{LearningRate: 5e-4, KL: credit.KL{Coef: 0.1, Lag: 1}, PrecalculateLogprobs: true},
	}
	for _, cfg := range configs {
		groups := gather()
		require.NoError(t, m.Log(t.Context(), "train", gather()[:1], nil))
		_, err := m.Train(t.Context(), groups, cfg)
		require.NoError(t, err)
	}
	lesson := art.NewTrajectory(art.User("1+1="), art.Assistant("2"))
	lessons := []*art.Trajectory{lesson, lesson.Clone()}
	_, err := m.TrainSFT(t.Context(), lessons, &art.SFTConfig{LearningRate: 1e-3, Epochs: 2})
	require.NoError(t, err)
	worse := art.NewTrajectory(art.User("1+1="), art.Assistant("3"))
	pair := art.Preference{Chosen: lesson, Rejected: worse}
	_, err = m.TrainDPO(t.Context(), []art.Preference{pair}, &art.DPOConfig{LearningRate: 1e-3})
	require.NoError(t, err)
	_, err = m.Restore(t.Context(), 1)
	require.NoError(t, err)
	dir, err := b.Dir(m)
	require.NoError(t, err)
	for step := range len(configs) + 2 {
		got, err := b.Replay(t.Context(), dir, step)
		require.NoError(t, err, "step %d", step)
		require.Equal(t, &Replayed{Step: step + 1, Equal: true, Device: got.Device}, got)
	}
	_, err = b.Replay(t.Context(), dir, 5)
	require.ErrorIs(t, err, art.ErrUnsupported, "a restored step")
	_, err = b.Replay(t.Context(), dir, 6)
	require.ErrorIs(t, err, art.ErrInvalid, "the newest step")
}

// TestReplay_Pruned: an update from a checkpoint that a retention deleted cannot be made again; the error lists what
// there is. An update between two that were kept still can.
func TestReplay_Pruned(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", &art.ModelOptions{Retention: &art.Retention{Newest: 2}})
	require.NoError(t, m.Register(t.Context(), b))
	trainSteps(t, m, 1, 2, 3)
	dir, err := b.Dir(m)
	require.NoError(t, err)
	for step, missing := range map[int]string{0: "no checkpoint of step 0", 1: "no checkpoint of step 1"} {
		_, err := b.Replay(t.Context(), dir, step)
		require.ErrorIs(t, err, art.ErrInvalid)
		require.ErrorContains(t, err, missing)
		require.ErrorContains(t, err, "it has 2-3")
		_, err = b.Packed(t.Context(), dir, step)
		require.ErrorContains(t, err, missing)
	}
	got, err := b.Replay(t.Context(), dir, 2)
	require.NoError(t, err)
	require.True(t, got.Equal)
}

// TestReplay_Differs: what was changed afterwards shows: another configuration gives another adapter.
func TestReplay_Differs(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	groups, err := art.GatherGroups(t.Context(), []string{"7+5="}, twoTurns(m), &art.GatherOptions{GroupSize: 4})
	require.NoError(t, err)
	_, err = m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-3})
	require.NoError(t, err)
	require.NoError(t, m.DeleteCheckpoints(t.Context(), "train/reward"))
	dir, err := b.Dir(m)
	require.NoError(t, err)
	reader, err := runs.NewReader(dir)
	require.NoError(t, err)
	to, err := reader.Checkpoint(1)
	require.NoError(t, err)
	record, err := readUpdate(to)
	require.NoError(t, err)
	record.Train.LearningRate = 2e-3
	e, err := b.replayEntry(t.Context(), description{Base: "tiny"}, filepath.Join(dir, "checkpoints", "0000"), record)
	require.NoError(t, err)
	state, err := b.replay(t.Context(), &storedUpdate{reader: reader, record: record, groups: groups, entry: e}, 0)
	require.NoError(t, err)
	_, want, err := readCheckpoint(to, e.base)
	require.NoError(t, err)
	equal, difference := compareStates(state, want)
	require.False(t, equal)
	require.Greater(t, difference, 1e-4)
}

// TestReadUpdate_Bad: a record that is damaged, or of a newer version, is an error.
func TestReadUpdate_Bad(t *testing.T) {
	for _, content := range []string{
		"", "{", `{"groups": 1, "context": 64}`,
		`{"train": {}, "sft": {}, "groups": 1, "context": 64}`,
		`{"train": {}, "groups": -1, "context": 64}`,
		`{"train": {"NewOption": 1}, "groups": 1, "context": 64}`,
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, runs.UpdateFile), []byte(content), 0o644))
		_, err := readUpdate(dir)
		require.Error(t, err, content)
	}
}
