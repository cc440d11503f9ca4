package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/internal/brief"
	"github.com/goart-dev/art/internal/safetensors"
)

// WeightsFile is the name of the weights in a model folder.
const WeightsFile = "model.safetensors"

// Checkpoint is a checkpoint in mapped files. Its tensors are read on demand.
type Checkpoint struct {
	Config *Config
	set    tensorSet
}

// tensorSet is an open checkpoint.
type tensorSet interface {
	Names() []string
	Tensor(name string) (storedTensor, bool)
	Release(name string)
	Close() error
}

// storedTensor is a tensor in a file.
type storedTensor struct {
	Shape []int
	Type  string // of the elements
	Data  []byte
	Check func() error                   // why it cannot be converted to float32
	Read  func(dst []float32, first int) // converts len(dst) elements from element first on
}

// float32s converts all elements.
func (t storedTensor) float32s() []float32 {
	data := make([]float32, Spec{Shape: t.Shape}.size())
	t.Read(data, 0)
	return data
}

// folderSet is the safetensors of a folder, or one file of them.
type folderSet struct {
	tensorFiles
}

// tensorFiles is what safetensors.Set and safetensors.File have in common.
type tensorFiles interface {
	Names() []string
	Tensor(name string) (safetensors.Tensor, bool)
	Release(name string)
	Close() error
}

// Tensor returns the tensor of that name.
func (s folderSet) Tensor(name string) (storedTensor, bool) {
	t, ok := s.tensorFiles.Tensor(name)
	return storedTensor{Shape: t.Shape, Type: string(t.DType), Data: t.Data, Check: t.Check, Read: t.Read}, ok
}

// Open opens a model: a folder with config.json and model.safetensors, or its shards, or a GGUF file, whose quantized
// tensors are converted to float32 when they are read. Unknown and missing tensors are errors. A tied model may
// hold its embedding again, as an output head.
func Open(path string) (*Checkpoint, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if !info.IsDir() {
		return openGGUF(path)
	}
	c, err := LoadConfig(path)
	if err != nil {
		return nil, err
	}
	set, err := safetensors.OpenIndex(path)
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", path, err)
	}
	if err := checkTensors(c, folderSet{set}); err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return &Checkpoint{c, folderSet{set}}, nil
}

// Close closes the files. The checkpoint may not be read afterwards; Config, and what was read before, stay valid.
func (c *Checkpoint) Close() error { return c.set.Close() }

// Weights reads all tensors.
func (c *Checkpoint) Weights() *Weights {
	w := &Weights{Config: c.Config}
	for _, s := range c.Config.Specs() {
		stored, _ := c.set.Tensor(s.Name)
		w.Tensors = append(w.Tensors, Tensor{Name: s.Name, Shape: s.Shape, Data: stored.float32s()})
	}
	return w
}

// Params copies the tensors to the device one after another, as [Weights.Params] does. The host keeps no copy: pages of
// the files that were read are released.
func (c *Checkpoint) Params(device compute.Backend) (*Params, error) {
	return c.ParamsAs(device, dtypes.Float32)
}

// ParamsAs is Params with matrices of another type, see [Weights.ParamsAs].
func (c *Checkpoint) ParamsAs(device compute.Backend, matrices dtypes.DType) (*Params, error) {
	return c.ParamsContext(context.Background(), device, matrices)
}

// ParamsContext is ParamsAs with a context, which it checks before each tensor.
func (c *Checkpoint) ParamsContext(
	ctx context.Context, device compute.Backend, matrices dtypes.DType,
) (*Params, error) {
	p, err := newParams(device, matrices)
	if err != nil {
		return nil, err
	}
	for _, s := range c.Config.Specs() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		stored, _ := c.set.Tensor(s.Name)
		if err := p.add(device, s.Name, s.Shape, stored.Read); err != nil {
			return nil, err
		}
		c.set.Release(s.Name)
	}
	return p, nil
}

// Load opens a model, as [Open] does, and reads all its tensors.
func Load(path string) (*Weights, error) {
	c, err := Open(path)
	if err != nil {
		return nil, err
	}
	w := c.Weights()
	return w, c.Close()
}

// Parse opens a checkpoint in memory, such as an embedded one.
func Parse(config, weights []byte) (*Checkpoint, error) {
	c, err := ParseConfig(config)
	if err != nil {
		return nil, err
	}
	file, err := safetensors.Parse(weights)
	if err != nil {
		return nil, fmt.Errorf("model: %s: %w", WeightsFile, err)
	}
	if err := checkTensors(c, folderSet{file}); err != nil {
		return nil, err
	}
	return &Checkpoint{c, folderSet{file}}, nil
}

// checkTensors compares the tensors with those of the architecture.
func checkTensors(c *Config, set tensorSet) error {
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
		case strings.HasSuffix(name, ".rotary_emb.inv_freq"): // a table in old files that nobody reads
		default:
			errs = append(errs,
				fmt.Errorf("model: the checkpoint has %s, which %s does not: is it another architecture?", name, c.ModelType))
		}
	}
	return brief.Errors(errs)
}

// checkCopy reports an output head that differs from the embedding that it is tied to. Some checkpoints, such as that
// of Qwen/Qwen3-0.6B, hold a copy.
func checkCopy(set tensorSet) error {
	head, _ := set.Tensor(headName)
	embed, ok := set.Tensor(embedName)
	if ok && (head.Type != embed.Type || !slices.Equal(head.Shape, embed.Shape) || !bytes.Equal(head.Data, embed.Data)) {
		return fmt.Errorf("model: the checkpoint has a %s that differs from %s: set tie_word_embeddings to false in %s",
			headName, embedName, ConfigFile)
	}
	return nil
}

func checkTensor(s Spec, set tensorSet) error {
	stored, ok := set.Tensor(s.Name)
	if !ok {
		return fmt.Errorf("model: the checkpoint has no %s", s.Name)
	}
	if !slices.Equal(stored.Shape, s.Shape) {
		return fmt.Errorf("model: %s is %v, the configuration requires %v", s.Name, stored.Shape, s.Shape)
	}
	if err := stored.Check(); err != nil {
		return fmt.Errorf("model: %s: %w", s.Name, err)
	}
	return nil
}
