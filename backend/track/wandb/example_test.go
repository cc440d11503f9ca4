package wandb_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/track/wandb"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// A training is written as a W&B run, without a network. In a terminal, wandb sync DIR/offline-run-* uploads it.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "wandb")
	check(err)
	defer os.RemoveAll(dir)
	runs, err := wandb.New(&wandb.Options{Dir: dir})
	check(err)

	model := art.NewModel("player", &art.ModelOptions{Project: "games", Events: runs.Events()})
	check(model.Register(ctx, &arttest.Backend{})) // a fake; a program opens backend/local
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 0}, {Reward: 1}}}}
	_, err = model.Train(ctx, groups, nil)
	check(err)

	check(runs.Close()) // writes what waits
	files, err := filepath.Glob(filepath.Join(dir, "offline-run-*", "*.wandb"))
	check(err)
	fmt.Println(filepath.Base(files[0]))
	// Output: run-player.wandb
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
