package main

import "testing"

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
	if _, err := draw(t.Context(), backend, model, 0.1, 0.5); err != nil {
		t.Error(err)
	}
}

func TestAfter(t *testing.T) {
	if f, err := after(""); f != nil || err != nil {
		t.Errorf("no judge: %v", err)
	}
	for _, judge := range []string{"ruler", "nobody"} {
		if _, err := after(judge); err == nil {
			t.Errorf("judge %q is no error", judge)
		}
	}
}
