// Command learning runs the suite of package internal/dev/learning, and prints the table of docs/learning.md.
//
//	go run ./internal/dev/cmd/learning -seeds 3 -out learning.json
//
// Runs that were interrupted continue, and finished ones are read again. Tasks are chosen by -tasks; -steps shortens
// them. It fails when a task has not reached its aim, unless -steps is set.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/dev/learning"
)

func main() {
	dir := flag.String("dir", ".art-learning", "folder of the runs")
	seeds := flag.Int("seeds", 1, "so many seeds, from 1 on")
	names := flag.String("tasks", "", "names, with commas between them; default: all")
	steps := flag.Int("steps", 0, "steps of each task; 0: its own")
	out := flag.String("out", "", "file for the results as JSON")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *names, *seeds, *out, learning.Options{Dir: *dir, Steps: *steps}); err != nil {
		fmt.Fprintln(os.Stderr, "learning:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names string, seeds int, out string, o learning.Options) error {
	tasks, err := choose(names)
	if err != nil {
		return err
	}
	o.Report = func(task *learning.Task, p learning.Point) {
		fmt.Fprintf(os.Stderr, "%s seed %d step %d: %.3f\n", task.Name, o.Seed, p.Step, p.Value)
	}
	var results []*learning.Result
	var missed []string
	for _, task := range tasks {
		for seed := 1; seed <= seeds; seed++ {
			o.Seed = uint64(seed)
			r, err := learning.Run(ctx, task, o)
			if err != nil {
				return fmt.Errorf("%s, seed %d: %w", task.Name, seed, err)
			}
			results = append(results, r)
			if !r.Reached {
				missed = append(missed, fmt.Sprintf("%s, seed %d", task.Name, seed))
			}
		}
	}
	fmt.Print(learning.Table(tasks, results))
	if err := save(out, results); err != nil {
		return err
	}
	if len(missed) > 0 && o.Steps == 0 {
		return errors.New("not reached: " + strings.Join(missed, "; "))
	}
	return nil
}

// choose returns the tasks of these names.
func choose(names string) ([]*learning.Task, error) {
	all := learning.Tasks()
	if names == "" {
		return all, nil
	}
	var chosen []*learning.Task
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(all, func(t *learning.Task) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no task is called %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// save writes results as JSON, if there is a file to write.
func save(path string, results []*learning.Result) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
