package main

import (
	"fmt"
	"testing"

	"github.com/goart-dev/art"
)

// Two steps of a small run: the first is supervised, and teaches the words.
func TestTrain(t *testing.T) {
	useBoard(t, "2x2")
	*games, *dir = 50, t.TempDir()
	backend, model, err := open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	before := measured(t.Context(), backend, model)
	if err := teachMoves(t.Context(), model, 150); err != nil {
		t.Fatal(err)
	}
	if after := evaluate(t.Context(), model); after <= before || model.Step() != 1 {
		t.Errorf("step %d: mean reward %.3f, then %.3f", model.Step(), before, after)
	}
	if again := measured(t.Context(), backend, model); again <= before {
		t.Errorf("the logged reward is %.3f", again)
	}
	draw(t.Context(), backend, model, 0.1, 0.5)
}

func TestAfter(t *testing.T) {
	if f, err := after(""); f != nil || err != nil {
		t.Errorf("no judge: %v", err)
	}
	if _, err := after("nobody"); err == nil {
		t.Error("judge nobody is no error")
	}
	hook, err := after("ruler")
	if err != nil {
		t.Fatal(err)
	}
	g := &art.TrajectoryGroup{}
	for i, m := range []map[string]float64{
		{"win": 1, "max_value": 16, "board_value": 20}, {"max_value": 8, "board_value": 20}, {"max_value": 8,
			"board_value": 12},
		{"max_value": 4, "board_value": 12}, {"max_value": 8, "board_value": 20, "invalid_move": 1},
	} {
		// Equal trajectories are judged once: these differ in what they say.
		g.Trajectories = append(g.Trajectories, &art.Trajectory{
			History: art.History{Messages: []art.Message{art.Assistant(fmt.Sprint(i))}}, Metrics: m,
		})
	}
	judged, err := hook(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	for i, trajectory := range judged[0].Trajectories[1:] {
		if before := judged[0].Trajectories[i].Reward; trajectory.Reward >= before {
			t.Errorf("the %d. gets %v, and the one before %v", i+1, trajectory.Reward, before)
		}
	}
}
