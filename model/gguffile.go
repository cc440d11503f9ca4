package model

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art/internal/gguf"
)

// openGGUF opens a GGUF file. The changes that llama.cpp made to tensors are undone as they are read: names and shapes
// are those of a Hugging Face checkpoint, and the configuration is that of its config.json.
func openGGUF(path string) (*Checkpoint, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	c, err := ggufCheckpoint(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w (in %s)", err, path), f.Close())
	}
	return c, nil
}

// loadGGUFConfig reads the configuration of a GGUF file from its header.
func loadGGUFConfig(path string) (*Config, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	c, _, err := parseGGUFConfig(f)
	if err != nil {
		err = fmt.Errorf("%w (in %s)", err, path)
	}
	return c, errors.Join(err, f.Close())
}

func parseGGUFConfig(f *gguf.File) (*Config, ggufModel, error) {
	content, m, err := ggufConfig(f)
	if err != nil {
		return nil, m, err
	}
	c, err := ParseConfig(content)
	return c, m, err
}

// ggufCheckpoint returns a file as a checkpoint.
func ggufCheckpoint(f *gguf.File) (*Checkpoint, error) {
	config, m, err := parseGGUFConfig(f)
	if err != nil {
		return nil, err
	}
	set := &ggufSet{file: f, model: m, config: config, tensors: map[string]ggufTensor{}}
	for _, name := range f.Names() {
		t, _ := f.Tensor(name)
		if name == ropeFactorsName {
			continue // it is part of the configuration
		}
		if before, after, ok := expertNames(name); ok && len(t.Shape) == 3 && len(t.Data) > 0 {
			shape := t.Shape[1:] // of an expert
			for e := range t.Shape[0] {
				set.add(before+strconv.Itoa(e)+after, ggufTensor{Tensor: t, shape: shape, first: e * Spec{Shape: shape}.size()})
			}
			continue
		}
		full, ok := m.checkpointName(name)
		if !ok {
			full = name // a tensor without a counterpart
		}
		set.add(full, set.changed(full, t))
	}
	if len(set.names) != len(set.tensors) {
		return nil, errors.New("model: GGUF: two tensors of the file are the same one of a checkpoint")
	}
	if err := checkTensors(config, set); err != nil {
		return nil, err
	}
	return &Checkpoint{config, set}, nil
}

// ggufSet gives the tensors of a file their names in a checkpoint.
type ggufSet struct {
	file    *gguf.File
	model   ggufModel
	config  *Config
	names   []string
	tensors map[string]ggufTensor // by name in a checkpoint
}

// ggufTensor is a tensor of a file, or the part of one for an expert.
type ggufTensor struct {
	gguf.Tensor
	shape []int
	first int     // its first element in the tensor of the file
	heads int     // of queries or keys with interleaved rows, which are reordered; 0: none
	shift float32 // added to each element
}

func (s *ggufSet) add(name string, t ggufTensor) {
	s.names = append(s.names, name)
	s.tensors[name] = t
}

// changed describes how llama.cpp changed a tensor.
func (s *ggufSet) changed(name string, t gguf.Tensor) ggufTensor {
	out := ggufTensor{Tensor: t, shape: t.Shape}
	switch {
	case s.model.offsetNorms && strings.HasSuffix(name, "norm.weight"):
		out.shift = -1
	case s.model.interleaved && strings.Contains(name, ".q_proj."):
		out.heads = s.config.NumHeads
	case s.model.interleaved && strings.Contains(name, ".k_proj."):
		out.heads = s.config.NumKVHeads
	}
	return out
}

// Read converts len(dst) elements from element first on, in the order and with the values of a checkpoint.
func (t ggufTensor) Read(dst []float32, first int) {
	if t.heads == 0 {
		t.Tensor.Read(dst, t.first+first)
	} else {
		t.readRows(dst, first)
	}
	if t.shift != 0 {
		for i := range dst {
			dst[i] += t.shift
		}
	}
}

// readRows reads rows in the order of a checkpoint. llama.cpp interleaves them: row i of the first half of a head is
// followed by row i of the second half, with which RoPE pairs it.
func (t ggufTensor) readRows(dst []float32, first int) {
	columns := Spec{Shape: t.shape[1:]}.size()
	half := t.shape[0] / t.heads / 2
	for len(dst) > 0 {
		row, column := first/columns, first%columns
		head, inHead := row/(2*half), row%(2*half)
		written := head*2*half + inHead%half*2 + inHead/half
		n := min(columns-column, len(dst))
		t.Tensor.Read(dst[:n], written*columns+column)
		dst, first = dst[n:], first+n
	}
}

// Names returns the names in a checkpoint.
func (s *ggufSet) Names() []string { return slices.Clone(s.names) }

// Tensor returns a tensor by its name in a checkpoint.
func (s *ggufSet) Tensor(name string) (storedTensor, bool) {
	t, ok := s.tensors[name]
	return storedTensor{Shape: t.shape, Type: t.Type.String(), Data: t.Data, Check: t.Check, Read: t.Read}, ok
}

// Release lets the system evict the pages of a tensor.
func (s *ggufSet) Release(name string) { s.file.Release(s.tensors[name].Name) }

// Close closes the file.
func (s *ggufSet) Close() error { return s.file.Close() }
