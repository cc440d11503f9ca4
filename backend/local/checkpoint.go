package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/safetensors"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
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
	var list []safetensors.Tensor
	for i, name := range s.Names {
		list = append(list,
			safetensors.NewFloat32(name+".m", s.Shapes[i], s.M[i]),
			safetensors.NewFloat32(name+".v", s.Shapes[i], s.V[i]))
	}
	f, err := os.Create(filepath.Join(dir, optimizerFile))
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	err = safetensors.Write(out, list, nil)
	if err := errors.Join(err, out.Flush(), f.Close()); err != nil {
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
			t, ok := file.Tensor(name + suffix)
			switch {
			case err != nil:
			case !ok || !slices.Equal(t.Shape, s.Shapes[i]):
				err = fmt.Errorf("%s: no %s of shape %v", optimizerFile, name+suffix, s.Shapes[i])
			default:
				to[i], err = t.Float32s()
			}
		}
	}
	return errors.Join(err, file.Close())
}

// Restore commits the next step as a copy of a stored one, with its optimizer, and serves it.
func (b *Backend) Restore(ctx context.Context, m *art.Model, step int) (int, error) {
	const op = "restore"
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	e, err := b.beginStep(op, m)
	if err != nil {
		return 0, err
	}
	defer e.training.Unlock()
	from, ok := e.run.Checkpoint(step)
	if !ok {
		return 0, invalid(op, "take one of those that Backend.Checkpoints lists", "step %d has no checkpoint", step)
	}
	if err := e.run.Verify(step); err != nil {
		return 0, err
	}
	restored, state, err := readCheckpoint(from, e.base)
	if err != nil {
		return 0, checkpointError(op, from, err)
	}
	onDevice, err := restored.upload(e.base)
	if err != nil {
		return 0, &art.Error{Op: op, Err: err}
	}
	next := e.run.Next()
	update := runs.Update{Metrics: map[string]float64{"train/restored_step": float64(step)}}
	if err := e.run.CommitUpdate(next, update, runs.CopyCheckpoint(from)); err != nil {
		return 0, err
	}
	e.policy, e.state = restored, state
	e.serving.Store(&serving{step: next, adapter: onDevice})
	e.committed = time.Now()
	b.opts.Logger.Info("step restored", "model", m.Name(), "from", step, "step", next)
	b.retain(m, e)
	return next, nil
}

// readCheckpoint reads policy and optimizer of a checkpoint.
func readCheckpoint(dir string, s *base) (policy, *trainer.State, error) {
	p, err := readPolicy(dir, s)
	if err != nil {
		return policy{}, nil, err
	}
	p, state, err := p.begin()
	if err != nil {
		return policy{}, nil, err
	}
	return p, state, readOptimizer(dir, state)
}

// checkpointError is the error of a checkpoint that cannot be read.
func checkpointError(op, dir string, err error) error {
	return &art.Error{
		Op: op, Err: fmt.Errorf("%w: %s: %w", art.ErrCorrupt, dir, err),
		Hint: "restore the folder from a copy, or move it away to continue from the previous step",
	}
}

// Export writes m as a model of its own, the adapter of its newest step merged into the weights, or all weights of
// that, into a new folder that transformers and [Open] read: config.json, safetensors and the tokenizer. opts may be
// nil; its Edit sees the merged values. A folder that is not empty is an error.
func (b *Backend) Export(ctx context.Context, m *art.Model, dir string, opts *model.SaveOptions) error {
	e, err := b.stored("export", m)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	var adapter *lora.Adapter
	from := e.base.path
	if step := e.serving.Load().step; !m.Options().Frozen {
		switch folder, ok := e.run.Checkpoint(step); {
		case !ok:
			err = fmt.Errorf("%w: no checkpoint of step %d", art.ErrCorrupt, step)
		case isFull(folder):
			from = folder
		default:
			adapter, err = lora.Load(folder)
		}
	}
	var open *basemodel.Base // read again, tensor by tensor: on the device its weights may be packed
	if err == nil {
		open, err = basemodel.Open(from)
	}
	if err == nil {
		open.Config, _ = open.Config.WithContext(e.base.ropeContext)
		err = errors.Join(open.Export(dir, adapter, opts), open.Close())
	}
	if err != nil {
		return &art.Error{Op: "export", Err: err}
	}
	return nil
}
