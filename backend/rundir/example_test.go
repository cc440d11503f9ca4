package rundir_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/runs"
)

// All runs in a folder, with the metrics of each step. A program beside the one that trains may read them at any time.
func Example() {
	root, err := os.MkdirTemp("", "art") // that of a program is .art
	check(err)
	defer os.RemoveAll(root)
	evaluated(root)

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

// evaluated stores a run with an evaluation of step 0, as backend/local does.
func evaluated(root string) {
	run, err := runs.Open(root, "games", "player", nil)
	check(err)
	defer run.Close()
	check(run.WriteModel(rundir.Description{Name: "player", Project: "games", Base: "tiny"}))
	check(run.Commit(0, func(dir string) error { return os.WriteFile(filepath.Join(dir, "weights"), nil, 0o600) }))
	check(run.Log("val", 0, map[string]float64{"val/reward": 0.25}))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
