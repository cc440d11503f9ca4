package local_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/backend/rundir"
)

// TestGoldenRuns: this version reads and continues the runs of earlier ones. internal/dev/cmd/goldenrun wrote them,
// each when its version was released, and before-v0.1.0 before files had numbers of formats.
func TestGoldenRuns(t *testing.T) {
	const folder = "backend/local/testdata/runs"
	t.Chdir(filepath.Join("..", "..")) // runs know their base model by its path
	versions, err := filepath.Glob(filepath.Join(folder, "*v*"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(versions), 2)
	for _, version := range versions {
		t.Run(filepath.Base(version), func(t *testing.T) {
			root := t.TempDir()
			require.NoError(t, os.CopyFS(root, os.DirFS(version)))
			readGolden(t, root)
			continueGolden(t, root)
		})
	}
}

// readGolden reads what internal/dev/cmd/goldenrun stores, without a model.
func readGolden(t *testing.T, root string) {
	run, step, err := rundir.Find(root, "golden")
	require.NoError(t, err)
	require.Equal(t, 2, step)
	steps, err := run.Steps()
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2}, steps)
	for _, step := range steps {
		_, err := run.Checkpoint(step)
		require.NoError(t, err)
	}
	rows, err := run.History()
	require.NoError(t, err)
	require.Len(t, rows, 3)
	require.Contains(t, rows[0].Metrics, "train/reward")
	groups, err := run.ReadTrajectories("train", 0)
	require.NoError(t, err)
	require.Len(t, groups, 2)
	require.Equal(t, "the game is over", groups[0].Failures[0].Message)
	for _, g := range groups {
		require.Len(t, g.Trajectories, 4)
		for _, trajectory := range g.Trajectories {
			require.Equal(t, trajectory.Messages[0].Content, trajectory.Metadata["question"])
			require.Equal(t, 1.0, trajectory.Metrics["turns"])
			require.Len(t, trajectory.Samples(), 1)
			require.NotEmpty(t, trajectory.Samples()[0].Logprobs)
		}
	}
}

// continueGolden makes an update again, and one more.
func continueGolden(t *testing.T, root string) {
	ctx := t.Context()
	backend, err := local.Open(ctx, &local.Options{Dir: root, Context: 64, Slots: 4, Progress: io.Discard})
	require.NoError(t, err)
	defer backend.Close()
	for step := range 2 {
		replayed, err := backend.Replay(ctx, filepath.Join(root, "runs", "models", "golden"), step)
		require.NoError(t, err)
		require.Less(t, replayed.Difference, 1e-4, "a later version may round otherwise, and not more")
	}
	model := art.NewModel("golden", &art.ModelOptions{
		Project: "runs", Base: "backend/local/testdata/runs/base.gguf", Seed: 1, LoRA: art.LoRA{Rank: 1, Alpha: 2, Targets: []string{"o_proj"}},
	})
	require.NoError(t, model.Register(ctx, backend))
	require.Equal(t, 2, model.Step())
	about, err := os.ReadFile(filepath.Join(root, "runs", "models", "golden", "model.json"))
	require.NoError(t, err)
	require.Contains(t, string(about), `"layout": 3`, "it is migrated when it is continued")
	require.Contains(t, string(about), `"weights": "float32"`)
	var state map[string]int
	found, err := model.LoadState(ctx, &state)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, map[string]int{"position": 3}, state)
	example := art.NewTrajectory(art.User("yes or no"), art.Assistant("no"))
	_, err = model.TrainSFT(ctx, []*art.Trajectory{example}, &art.SFTConfig{LearningRate: 1e-3})
	require.NoError(t, err)
	require.Equal(t, 3, model.Step())
	require.NoError(t, loop.LoadWeights(ctx, model, "@weights/kept", true))
}
