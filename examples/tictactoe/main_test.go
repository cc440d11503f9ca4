package main

import (
	"context"
	"flag"
	"reflect"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/examples/tictactoe/game"
)

var runSeed = flag.Uint64("run", 0, "seed of the run in -runs whose player is measured over all lines of play")
var runsDir = flag.String("runs", ".art", "where runs are stored")

// A resumed run is not evaluated twice at one step: otherwise -short on a finished run compares an evaluation with
// itself and fails.
func TestMeasured_Again(t *testing.T) {
	usual := *games
	*games, *dir, *seed = 4, t.TempDir(), 1
	t.Cleanup(func() { *games = usual })
	rows := func() []art.HistoryRow {
		backend, model, err := open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer backend.Close()
		measured(t.Context(), backend, model)
		rows, err := backend.History(t.Context(), model)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	first, again := rows(), rows()
	if len(first) != 1 || !reflect.DeepEqual(first, again) {
		t.Errorf("rows %v, then %v", first, again)
	}
}

// scripts are all ways in which an opponent can choose among its free cells.
func scripts(first bool) [][]int {
	counts := []int{9, 7, 5, 3, 1}
	if first {
		counts = []int{8, 6, 4, 2}
	}
	all := [][]int{nil}
	for _, n := range counts {
		var longer [][]int
		for _, s := range all {
			for choice := range n {
				longer = append(longer, append(s[:len(s):len(s)], choice))
			}
		}
		all = longer
	}
	return all
}

// TestLines plays the greedy agent of a stored run through every line of play from the empty board, on both sides:
//
//	go test ./examples/tictactoe -run Lines -v -args -run 1 -runs "$PWD/.art"
func TestLines(t *testing.T) {
	if *runSeed == 0 {
		t.Skip("measures a stored run: see the comment")
	}
	*seed, *dir = *runSeed, *runsDir
	backend, model, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	for _, first := range []bool{true, false} {
		total, lost, illegal := countLines(t, model, first)
		t.Logf("step %d, agent first %v: %d lines, %d lost, %d with an illegal move", model.Step(), first, total, lost,
			illegal)
	}
}

func countLines(t *testing.T, model *art.Model, first bool) (total, lost, wrong int) {
	g, err := art.Gather(t.Context(), scripts(first), func(ctx context.Context, script []int) (*art.Trajectory, error) {
		next := 0
		return game.Play(ctx, model, first, game.Random(func(int) int { next++; return script[next-1] }),
			&art.ChatOptions{Temperature: new(0.0)})
	}, &art.GatherOptions{Concurrency: 64})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, x := range g.Trajectories {
		var line strings.Builder
		for _, m := range x.Messages {
			line.WriteString(m.Content + " ")
		}
		if seen[line.String()] {
			continue // the game ended before the scripts differ
		}
		seen[line.String()] = true
		total++
		switch x.Reward {
		case game.Loss:
			lost++
		case game.Illegal:
			wrong++
		}
	}
	return total, lost, wrong
}

// The judge prefers a game that was won, then one that was drawn, lost, broken off.
func TestAfter(t *testing.T) {
	hook, err := after("ruler")
	if err != nil {
		t.Fatal(err)
	}
	g := &art.TrajectoryGroup{}
	for i, m := range []map[string]float64{
		{"won": 1, "not_lost": 1, "moves": 3}, {"not_lost": 1, "moves": 5}, {"moves": 4}, {"moves": 2}, {"illegal": 1, "moves": 1},
	} {
		// Equal trajectories are judged once: these differ in what they say.
		g.Trajectories = append(g.Trajectories, &art.Trajectory{
			History: art.History{Messages: []art.Message{art.Assistant(strings.Repeat("1", i+1))}}, Metrics: m,
		})
	}
	judged, err := hook(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	for i, trajectory := range judged[0].Trajectories[1:] {
		if before := judged[0].Trajectories[i].Reward; trajectory.Reward >= before {
			t.Errorf("game %d gets %v, and the one before %v", i+1, trajectory.Reward, before)
		}
	}
	if f, err := after(""); f != nil || err != nil {
		t.Errorf("no judge: %v", err)
	}
	if _, err := after("nobody"); err == nil {
		t.Error("judge nobody is no error")
	}
}
