package main

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/goart-dev/art/model"
)

// TestTrain_Resumes: a training that stops after a snapshot and goes on gives the same weights as one that does not
// stop.
func TestTrain_Resumes(t *testing.T) {
	if testing.Short() {
		t.Skip("some dozen updates")
	}
	tok, template := trained(t)
	saved := func() error { return nil }
	begin := func() *model.Weights {
		w, err := firstWeights(tok, 5)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	run := func(w *model.Weights, file string, steps int) {
		t.Helper()
		parts := []stage{{"copies", copyText, 20, 100, 64, 1e-3}, {"talk", talk, steps, 100, 64, 1e-3}}
		if err := train(context.Background(), w, training{template, file, parts, 5, 20, saved}); err != nil {
			t.Fatal(err)
		}
	}
	whole, file := begin(), filepath.Join(t.TempDir(), "training.gob")
	run(whole, file, 3)

	stopped, cancel := context.WithCancel(context.Background())
	parts := []stage{{"copies", copyText, 20, 100, 64, 1e-3}, {"stop", stopping(cancel), 3, 100, 64, 1e-3}}
	if err := train(stopped, begin(), training{template, file, parts, 5, 20, saved}); err == nil {
		t.Fatal("the training was not stopped")
	}
	resumed := begin()
	run(resumed, file, 3)
	for i := range whole.Tensors {
		if !reflect.DeepEqual(whole.Tensors[i].Data, resumed.Tensors[i].Data) {
			t.Fatalf("%s differs", whole.Tensors[i].Name)
		}
	}
}

// stopping is a generator that cancels the training.
func stopping(cancel func()) func(*rand.Rand) example {
	return func(rng *rand.Rand) example {
		cancel()
		return talk(rng)
	}
}
