package publish_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/publish"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/runs"
)

// Whenever a validation is the best so far, the checkpoint is copied to a folder.
func Example() {
	ctx := context.Background()
	root, err := os.MkdirTemp("", "art")
	check(err)
	defer os.RemoveAll(root)
	to := publish.New(publish.Folder(filepath.Join(root, "models")), &publish.Options{Best: "val/reward"})

	model := art.NewModel("player", &art.ModelOptions{Project: "games", Events: to.Events()})
	backend := newBackend(root) // a fake; a program opens backend/local
	check(model.Register(ctx, backend))
	check(model.Log(ctx, "val", nil, map[string]float64{"reward": 0.25}))

	check(to.Close(ctx)) // waits for what is not sent yet
	files, err := filepath.Glob(filepath.Join(root, "models", "games", "player", "*", "adapter_config.json"))
	check(err)
	fmt.Println(to.Sent(), "sent:", filepath.Base(filepath.Dir(files[0])))
	// Output: 1 sent: step0
}

// keeper is a fake backend with a run directory.
type keeper struct {
	*arttest.Backend
	dir string
}

// Dir returns the run directory.
func (k keeper) Dir(*art.Model) (string, error) { return k.dir, nil }

// newBackend returns a backend with the checkpoint of step 0.
func newBackend(root string) keeper {
	run, err := runs.Open(filepath.Join(root, "runs"), "games", "player", nil)
	check(err)
	defer run.Close()
	check(run.WriteModel(map[string]string{"name": "player"}))
	check(run.Commit(0, func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte("{}"), 0o600)
	}))
	return keeper{&arttest.Backend{}, run.Dir()}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
