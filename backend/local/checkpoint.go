package local

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/safetensors"
	"github.com/goart-dev/art/internal/trainer"
)

const (
	optimizerFile = "optimizer.safetensors"
	trainerFile   = "trainer.json"
)

// trainerState is trainer.json.
type trainerState struct {
	Updates int `json:"updates"` // of the optimizer, over all steps
}

// writeCheckpoint returns a function that writes policy and optimizer into the folder of a checkpoint.
func (e *entry) writeCheckpoint(baseName string) func(dir string) error {
	return func(dir string) error {
		if err := e.policy.save(dir, e.base, baseName); err != nil {
			return err
		}
		return writeTrainer(dir, e.state)
	}
}

// writeTrainer writes the optimizer of a state into a folder.
func writeTrainer(dir string, s *trainer.State) error {
	if err := writeOptimizer(filepath.Join(dir, optimizerFile), s); err != nil {
		return err
	}
	data, err := json.Marshal(trainerState{Updates: s.Updates})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, trainerFile), append(data, '\n'), 0o644)
}

// hasOptimizer reports whether a folder has an optimizer beside its adapter.
func hasOptimizer(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, trainerFile))
	return err == nil
}

func writeOptimizer(path string, s *trainer.State) error {
	var list []safetensors.Tensor
	for i, name := range s.Names {
		list = append(list,
			safetensors.NewFloat32(name+".m", s.Shapes[i], s.M[i]),
			safetensors.NewFloat32(name+".v", s.Shapes[i], s.V[i]))
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	err = safetensors.Write(out, list, nil)
	return errors.Join(err, out.Flush(), f.Close())
}

// load loads the checkpoint of a step.
func (e *entry) load(step int) error {
	dir, ok := e.run.Checkpoint(step)
	if !ok {
		return &art.Error{Op: "register", Err: fmt.Errorf("%w: no checkpoint of step %d", art.ErrCorrupt, step)}
	}
	p, state, err := readCheckpoint(dir, e.base)
	if err != nil {
		return checkpointError("register", dir, err)
	}
	e.policy, e.state = p, state
	return nil
}

func readOptimizer(dir string, s *trainer.State) error {
	data, err := os.ReadFile(filepath.Join(dir, trainerFile))
	if err != nil {
		return err
	}
	var t trainerState
	if err := json.Unmarshal(data, &t); err != nil {
		return fmt.Errorf("%s: %w", trainerFile, err)
	}
	s.Updates = t.Updates
	file, err := safetensors.Open(filepath.Join(dir, optimizerFile))
	if err != nil {
		return err
	}
	for i, name := range s.Names {
		for suffix, to := range map[string][][]float32{".m": s.M, ".v": s.V} {
			if err == nil {
				to[i], err = moment(file, name+suffix, s.Shapes[i])
			}
		}
	}
	return errors.Join(err, file.Close())
}

func moment(file *safetensors.File, name string, shape []int) ([]float32, error) {
	t, ok := file.Tensor(name)
	if !ok || !slices.Equal(t.Shape, shape) {
		return nil, fmt.Errorf("%s: no %s of shape %v", optimizerFile, name, shape)
	}
	return t.Float32s()
}
