package rundir_test

import (
	"context"
	"fmt"
	"os"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/backend/rundir"
)

// All runs in a folder, with the metrics of each step. A program beside the one that trains may do so at any time.
func Example() {
	root, err := os.MkdirTemp("", "art") // a program leaves Dir out: .art
	check(err)
	defer os.RemoveAll(root)
	evaluate(root)

	list, err := rundir.List(root)
	check(err)
	for _, run := range list {
		rows, err := run.History()
		check(err)
		for _, row := range rows {
			fmt.Println(run.About().Project, run.About().Name, row.Split, row.Step, row.Metrics["val/reward"])
		}
	}
	// Output: games player val 0 0.25
}

// evaluate stores a run with an evaluation of step 0.
func evaluate(root string) {
	ctx := context.Background()
	backend, err := local.Open(ctx, &local.Options{Dir: root})
	check(err)
	defer backend.Close()
	model := art.NewModel("player", &art.ModelOptions{Project: "games", Base: "tiny"})
	check(model.Register(ctx, backend))
	check(model.Log(ctx, "val", nil, map[string]float64{"reward": 0.25}))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
