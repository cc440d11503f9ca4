package main

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/model"
)

// progress is how far a training is. The chats of a step follow from the seed, the stage and the step, so that a
// training that goes on gives the same model as one that was not stopped.
type progress struct {
	Seed        uint64
	Stage, Step int
	State       *trainer.State
}

// loadProgress reads a file of save. Without one, the training begins with the given state.
func loadProgress(path string, seed uint64, first *trainer.State) (*progress, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &progress{Seed: seed, State: first}, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var p progress
	if err := gob.NewDecoder(f).Decode(&p); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if p.Seed != seed || p.State == nil || !slices.EqualFunc(p.State.Shapes, first.Shapes, slices.Equal[[]int]) {
		return nil, fmt.Errorf("%s is of another training; delete it to begin from the start", path)
	}
	return &p, nil
}

// save writes the file as a whole or not at all.
func (p *progress) save(path string) error {
	f, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	if err := errors.Join(gob.NewEncoder(f).Encode(p), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// copyTo replaces the weights by those of the training.
func (p *progress) copyTo(w *model.Weights) error {
	for i, name := range p.State.Names {
		if err := w.SetParam(name, p.State.Params[i]); err != nil {
			return err
		}
	}
	return nil
}
