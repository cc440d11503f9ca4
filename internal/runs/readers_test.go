package runs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestReaders: DuckDB and pandas read what a run stores. internal/dev/conformance/readers/read.py says how to run it.
func TestReaders(t *testing.T) {
	python := os.Getenv("ART_READERS_PYTHON")
	if python == "" {
		t.Skip("ART_READERS_PYTHON is not set: the interpreter of a virtual environment with duckdb, pandas and pyarrow")
	}
	r, err := Open(t.TempDir(), "p", "m", nil)
	require.NoError(t, err)
	defer r.Close()
	require.NoError(t, r.WriteModel(map[string]string{"name": "m"}))
	write := func(dir string) error { return os.WriteFile(filepath.Join(dir, "weights"), []byte("w"), 0o644) }
	require.NoError(t, r.Commit(0, write))
	for step := range 2 {
		g := &art.TrajectoryGroup{Failures: []art.Failure{{Message: "lost"}}}
		for i := range 3 {
			trajectory := art.NewTrajectory(art.User("hi"), art.Assistant("hello"))
			trajectory.Messages[1].Sample = &art.Sample{PromptIDs: []int32{1, 2}, IDs: []int32{3, 4, 5},
				Logprobs: []float32{-1, -2, -3}}
			trajectory.Reward, trajectory.Metrics["turns"] = float64(i+step), float64(2*i)
			g.Trajectories = append(g.Trajectories, trajectory)
		}
		update := Update{Groups: []*art.TrajectoryGroup{g, {}}, Metrics: map[string]float64{"reward": float64(1 + step)}}
		require.NoError(t, r.CommitUpdate(step+1, update, write))
	}
	script := filepath.Join("..", "conformance", "readers", "read.py")
	out, err := exec.CommandContext(t.Context(), python, script, r.Dir()).Output()
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(out, &got))
	require.Equal(t, map[string]any{
		"by_step": []any{[]any{"train", 0.0, 3.0, 1.0, 2.0}, []any{"train", 1.0, 3.0, 2.0, 2.0}},
		"tokens":  18.0, "history": 2.0, "reward": []any{1.0, 2.0}, "rows": 8.0, "first": "hi",
	}, got)
}
