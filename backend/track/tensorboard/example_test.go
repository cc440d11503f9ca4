package tensorboard_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/track/tensorboard"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// The rewards of a training become a curve. In a terminal, tensorboard --logdir DIR shows it.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "tensorboard")
	check(err)
	defer os.RemoveAll(dir)
	board, err := tensorboard.New(&tensorboard.Options{Dir: dir})
	check(err)

	model := art.NewModel("player", &art.ModelOptions{Project: "games", Events: board.Events()})
	check(model.Register(ctx, &arttest.Backend{})) // a fake; a program opens backend/local
	groups := []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 0}, {Reward: 1}}}}
	_, err = model.Train(ctx, groups, nil)
	check(err)

	check(board.Close()) // writes what waits
	files, err := filepath.Glob(filepath.Join(dir, "games", "player", "*tfevents*"))
	check(err)
	fmt.Println("event files of games/player:", len(files))
	// Output: event files of games/player: 1
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
