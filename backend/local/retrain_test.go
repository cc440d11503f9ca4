package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
)

// TestRetrain_FromStored: a run of 1,000 trajectories is written, moved to another place, read back without a model,
// and trained on again in another run: to the same bytes.
func TestRetrain_FromStored(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on 1,000 trajectories twice")
	}
	before := filepath.Join(t.TempDir(), "before")
	b := open(t, before)
	opts := &art.ModelOptions{Project: "p", Seed: 5, Chat: art.ChatOptions{MaxTokens: new(3)}}
	first := art.NewModel("first", opts)
	require.NoError(t, first.Register(t.Context(), b))
	var sums []string
	for i := range 125 {
		sums = append(sums, fmt.Sprintf("%d+%d=", i%10, i/10))
	}
	groups, err := art.GatherGroups(t.Context(), sums, func(ctx context.Context, sum string) (*art.Trajectory, error) {
		trajectory := art.NewTrajectory(art.User(sum))
		reply, err := first.Chat(ctx, trajectory, nil)
		if err == nil {
			trajectory.Reward = float64(len(reply.Content))
		}
		return trajectory, err
	}, &art.GatherOptions{GroupSize: 8})
	require.NoError(t, err)
	cfg := &art.TrainConfig{LearningRate: 1e-3, MiniBatches: 4}
	_, err = first.Train(t.Context(), groups, cfg)
	require.NoError(t, err)
	require.NoError(t, b.Close())
	after := filepath.Join(t.TempDir(), "after")
	require.NoError(t, os.Rename(before, after))

	run, _, err := rundir.Find(after, "p/first")
	require.NoError(t, err)
	stored, err := run.ReadTrajectories("train", 0)
	require.NoError(t, err)
	require.Equal(t, groups, stored)
	b = open(t, after)
	second := art.NewModel("second", opts)
	require.NoError(t, second.Register(t.Context(), b))
	_, err = second.Train(t.Context(), stored, cfg)
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join(run.Dir(), "checkpoints", "0001", "adapter_model.safetensors"))
	require.NoError(t, err)
	require.Equal(t, want, file(t, b, second, 1, "adapter_model.safetensors"))
}
