package runs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// A directory in the layout before, in which train rows had the number of the step that they led to, would lose its
// newest row.
func TestLayout_Other(t *testing.T) {
	for model, hint := range map[string]string{
		`{"base":"tiny"}`:            "ModelOptions.Adapter",
		`{"base":"tiny","layout":1}`: "ModelOptions.Adapter",
		`{"base":"tiny","layout":4}`: "upgrade with go get",
	} {
		r := threeSteps(t)
		require.NoError(t, os.WriteFile(filepath.Join(r.Dir(), modelName), []byte(model), 0o644))
		before := listing(t, r.Dir())
		_, err := openRun(filepath.Join(r.Dir(), "..", "..", ".."), disk{})
		require.ErrorIs(t, err, art.ErrUnsupported)
		require.ErrorContains(t, err, r.Dir())
		require.ErrorContains(t, err, hint)
		require.Equal(t, before, listing(t, r.Dir()))
	}
}

// Without model.json a run went on as one of whatever model was given.
func TestLayout_ModelMissing(t *testing.T) {
	for _, damage := range []func(path string) error{
		os.Remove,
		func(path string) error { return os.Truncate(path, 0) },
		func(path string) error { return os.WriteFile(path, []byte(`{"base":`), 0o644) },
	} {
		r := threeSteps(t)
		path := filepath.Join(r.Dir(), modelName)
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, damage(path))
		root := filepath.Join(r.Dir(), "..", "..", "..")
		_, err = openRun(root, disk{})
		require.ErrorIs(t, err, art.ErrCorrupt)
		copied := filepath.Join(r.checkpointDir(3), modelName)
		require.ErrorContains(t, err, "copy "+copied+" to "+path)

		stored, err := os.ReadFile(copied) // what the hint says
		require.NoError(t, err)
		require.Equal(t, string(content), string(stored))
		require.NoError(t, os.WriteFile(path, stored, 0o644))
		again, _ := openLogged(t, r)
		require.Zero(t, again.Damage())
	}
}

// A run that only logs needs its model.json too.
func TestLayout_ModelMissingWithoutCheckpoint(t *testing.T) {
	root := tempDir(t)
	r, err := Open(root, "project", "model", nil)
	require.NoError(t, err)
	for name, change := range changes(r) {
		if name == "log" || name == "trajectories" || name == "commit" || name == "update" {
			require.ErrorIs(t, change(), art.ErrInvalid, name)
		}
	}
	require.NoError(t, r.WriteModel(map[string]int{}))
	require.NoError(t, r.Log("train", 0, map[string]float64{"reward": 1}))
	require.NoError(t, r.Close())
	r, err = Open(root, "project", "model", nil)
	require.NoError(t, err)
	require.Equal(t, 1.0, trainRow(t, r, 0)["train/reward"], "a model that is not trained keeps what it logs")
	require.NoError(t, r.Close())
	require.NoError(t, os.Remove(filepath.Join(r.Dir(), modelName)))
	_, err = Open(root, "project", "model", nil)
	require.ErrorIs(t, err, art.ErrCorrupt)
	require.ErrorContains(t, err, "use another model name")
}

func TestWithLayout(t *testing.T) {
	content, err := withLayout(struct {
		Name string `json:"name"`
	}{"<&>"})
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(content, &got))
	require.Equal(t, map[string]any{"name": "<&>", "layout": 3.0}, got)
}

// TestMigrate: a directory of the layout before is read and continued as it is, until its model.json is written again.
func TestMigrate(t *testing.T) {
	r := threeSteps(t)
	path := filepath.Join(r.Dir(), modelName)
	require.NoError(t, os.WriteFile(path, []byte(`{"base":"tiny","layout":2}`), 0o644))
	again, _ := openLogged(t, r)
	require.Equal(t, 3, again.newest())
	require.NoError(t, again.Commit(4, func(string) error { return nil }))
	var head struct {
		Layout int
		Base   string
	}
	for _, base := range []string{"migrated", "is not written"} {
		_, err := again.ReadModel(&head)
		require.NoError(t, err)
		require.NoError(t, again.Migrate(map[string]string{"base": base}))
	}
	require.Equal(t, 3, head.Layout)
	require.Equal(t, "migrated", head.Base)
	require.NoError(t, again.Close())
	reader, err := NewReader(r.Dir())
	require.NoError(t, err)
	steps, err := reader.Steps()
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2, 3, 4}, steps)
}
