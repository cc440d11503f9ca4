package model

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/internal/safetensors"
)

// WeightsFile is the name of the weights in a model folder.
const WeightsFile = "model.safetensors"

// Checkpoint is a checkpoint in files, which are mapped: its tensors are read when they are asked for.
type Checkpoint struct {
	Config *Config
	set    tensorSet
}

// tensorSet is an open checkpoint.
type tensorSet interface {
	Names() []string
	Tensor(name string) (safetensors.Tensor, bool)
	Release(name string)
	Close() error
}

// Open opens a folder with config.json and model.safetensors, or its shards. Tensors that the architecture does not have are
// an error, and so are tensors that are missing. A tied model may hold its embedding again, as an output head.
func Open(dir string) (*Checkpoint, error) {
	c, err := LoadConfig(dir)
	if err != nil {
		return nil, err
	}
	set, err := safetensors.OpenIndex(dir)
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", dir, err)
	}
	if err := check(c, set); err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return &Checkpoint{c, set}, nil
}

// Close closes the files.
func (c *Checkpoint) Close() error { return c.set.Close() }

// Weights reads all tensors.
func (c *Checkpoint) Weights() (*Weights, error) {
	w := &Weights{Config: c.Config}
	for _, s := range c.Config.Specs() {
		stored, _ := c.set.Tensor(s.Name)
		data, err := stored.Float32s()
		if err != nil {
			return nil, fmt.Errorf("model: %s: %w", s.Name, err)
		}
		w.Tensors = append(w.Tensors, Tensor{Name: s.Name, Shape: s.Shape, Data: data})
	}
	return w, nil
}

// Params brings the tensors to the device one after another, as [Weights.Params] does. The host holds no copy: what was read
// of the files leaves the memory again.
func (c *Checkpoint) Params(device compute.Backend) (*Params, error) {
	p := &Params{}
	for _, s := range c.Config.Specs() {
		stored, _ := c.set.Tensor(s.Name)
		if err := p.add(device, s.Name, s.Shape, stored.Read); err != nil {
			return nil, err
		}
		c.set.Release(s.Name)
	}
	return p, nil
}

// Load reads a folder, as [Open] does, and all its tensors.
func Load(dir string) (*Weights, error) {
	c, err := Open(dir)
	if err != nil {
		return nil, err
	}
	w, err := c.Weights()
	return w, errors.Join(err, c.Close())
}

// Parse reads a checkpoint that is in memory: an embedded one.
func Parse(config, weights []byte) (*Weights, error) {
	c, err := ParseConfig(config)
	if err != nil {
		return nil, err
	}
	file, err := safetensors.Parse(weights)
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", WeightsFile, err)
	}
	if err := check(c, file); err != nil {
		return nil, err
	}
	return (&Checkpoint{c, file}).Weights()
}

// check compares the tensors with those of the architecture.
func check(c *Config, set tensorSet) error {
	var errs []error
	known := map[string]bool{}
	for _, s := range c.Specs() {
		known[s.Name] = true
		errs = append(errs, checkTensor(s, set))
	}
	for _, name := range set.Names() {
		switch {
		case known[name]:
		case name == headName: // of a tied model
			errs = append(errs, checkCopy(set))
		default:
			errs = append(errs, fmt.Errorf("model: the checkpoint has %s, which %s does not: is it another architecture?", name, c.ModelType))
		}
	}
	return errors.Join(errs...)
}

// checkCopy reports an output head that is not the embedding that it is tied to. Some checkpoints hold the copy, such as
// Qwen/Qwen3-0.6B.
func checkCopy(set tensorSet) error {
	head, _ := set.Tensor(headName)
	embed, ok := set.Tensor(embedName)
	if ok && (head.DType != embed.DType || !slices.Equal(head.Shape, embed.Shape) || !bytes.Equal(head.Data, embed.Data)) {
		return fmt.Errorf("model: the checkpoint has a %s that differs from %s: set tie_word_embeddings to false in %s", headName, embedName, ConfigFile)
	}
	return nil
}

func checkTensor(s Spec, set tensorSet) error {
	stored, ok := set.Tensor(s.Name)
	if !ok {
		return fmt.Errorf("model: the checkpoint has no %s", s.Name)
	}
	if !slices.Equal(stored.Shape, s.Shape) {
		return fmt.Errorf("model: %s is %v, the configuration asks for %v", s.Name, stored.Shape, s.Shape)
	}
	if err := stored.Check(); err != nil {
		return fmt.Errorf("model: %s: %w", s.Name, err)
	}
	return nil
}

// Save writes config.json and model.safetensors in float32.
func (w *Weights) Save(dir string) error {
	if err := w.check(); err != nil {
		return err
	}
	if err := w.Config.Save(dir); err != nil {
		return err
	}
	list := make([]safetensors.Tensor, 0, len(w.Tensors))
	for _, t := range w.Tensors {
		list = append(list, safetensors.NewFloat32(t.Name, t.Shape, t.Data))
	}
	f, err := os.Create(filepath.Join(dir, WeightsFile))
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	out := bufio.NewWriter(f)
	err = safetensors.Write(out, list, map[string]string{"format": "pt"})
	return errors.Join(err, out.Flush(), f.Close())
}
