package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/gguf"
)

// ggufParts returns the metadata and the tensors of a file.
func (c *Checkpoint) ggufParts(o *GGUFOptions) ([]gguf.Pair, []ggufPart, error) {
	set, ok := c.set.(*ggufSet)
	if !ok {
		arch, m, err := c.Config.ggufModel()
		if err != nil {
			return nil, nil, err
		}
		metadata := c.Config.ggufMetadata(arch, o.Name)
		for _, key := range slices.Sorted(maps.Keys(o.Tokenizer)) {
			metadata = append(metadata, gguf.Pair{Key: key, Value: o.Tokenizer[key]})
		}
		tensors, err := c.ggufTensors(m)
		return metadata, tensors, err
	}
	var metadata []gguf.Pair
	for _, key := range set.file.Keys() {
		value, _ := set.file.Value(key)
		metadata = append(metadata, gguf.Pair{Key: key, Value: value})
	}
	var tensors []ggufPart
	for _, name := range set.file.Names() {
		t, _ := set.file.Tensor(name)
		tensors = append(tensors, ggufPart{
			Header: ggml.Header{Name: name, Shape: t.Shape, Type: t.Type}, from: t.Type.String(), raw: t.Data, read: t.Read,
			release: func() { set.file.Release(name) },
		})
	}
	return metadata, tensors, nil
}

// ggufTensors returns the tensors of a checkpoint that is no GGUF file, as llama.cpp has them.
func (c *Checkpoint) ggufTensors(m ggufModel) ([]ggufPart, error) {
	tensors, err := c.Config.ropeFactors()
	if err != nil {
		return nil, err
	}
	experts := map[string]int{} // where tensors of all experts are
	for _, s := range c.Config.Specs() {
		stored, _ := c.set.Tensor(s.Name)
		release := func() { c.set.Release(s.Name) }
		merged, name, ok := m.fileName(s.Name)
		if !ok {
			return nil, fmt.Errorf("model: GGUF: llama.cpp has no name for %s", s.Name)
		}
		read := m.reverted(c.Config, s, stored.Read)
		if !merged {
			tensors = append(tensors, ggufPart{ggml.Header{Name: name, Shape: s.Shape}, stored.Type, nil, read, release})
			continue
		}
		i, ok := experts[name]
		if !ok {
			i, experts[name] = len(tensors), len(tensors)
			tensors = append(tensors, ggufPart{ggml.Header{Name: name, Shape: append([]int{0}, s.Shape...)}, stored.Type, nil,
				func([]float32, int) {}, func() {}})
		}
		tensors[i] = tensors[i].with(read, release)
	}
	return tensors, nil
}

// with adds an expert.
func (p ggufPart) with(read func([]float32, int), release func()) ggufPart {
	size := Spec{Shape: p.Shape[1:]}.size()
	before, freed := p.read, p.release
	end := p.Shape[0] * size
	p.Shape = slices.Clone(p.Shape)
	p.Shape[0]++
	p.read = func(dst []float32, first int) {
		if n := min(len(dst), end-first); n > 0 {
			before(dst[:n], first)
			dst, first = dst[n:], first+n
		}
		if len(dst) > 0 {
			read(dst, first-end)
		}
	}
	p.release = func() { freed(); release() }
	return p
}

// fileName returns llama.cpp's name. merged says that it is that of a tensor which holds all experts.
func (m ggufModel) fileName(name string) (merged bool, full string, ok bool) {
	stem, kind := cutKind(name)
	reverse := func(names map[string]string, part string) (string, bool) {
		for own, theirs := range names {
			if theirs == part {
				return own, true
			}
		}
		return "", false
	}
	if top, ok := reverse(ggufTop, stem); ok {
		return false, top + kind, true
	}
	number, part, _ := strings.Cut(strings.TrimPrefix(stem, "model.layers."), ".")
	block := "blk." + number + "."
	if expert, ok := strings.CutPrefix(part, "mlp.experts."); ok {
		_, part, _ = strings.Cut(expert, ".")
		own, ok := reverse(ggufExperts, part)
		return true, block + own + kind, ok
	}
	if m.sandwich {
		if own, ok := reverse(ggufSandwich, part); ok {
			return false, block + own + kind, true
		}
	}
	own, ok := reverse(ggufBlock, part)
	return false, block + own + kind, ok
}

// reverted makes the changes that ggufSet undoes.
func (m ggufModel) reverted(c *Config, s Spec, read func([]float32, int)) func([]float32, int) {
	heads := 0
	switch {
	case m.offsetNorms && strings.HasSuffix(s.Name, "norm.weight"):
		return func(dst []float32, first int) {
			read(dst, first)
			for i := range dst {
				dst[i]++
			}
		}
	case m.interleaved && strings.Contains(s.Name, ".q_proj."):
		heads = c.NumHeads
	case m.interleaved && strings.Contains(s.Name, ".k_proj."):
		heads = c.NumKVHeads
	default:
		return read
	}
	columns, half := Spec{Shape: s.Shape[1:]}.size(), s.Shape[0]/heads/2
	return func(dst []float32, first int) {
		for len(dst) > 0 {
			row, column := first/columns, first%columns
			head, inHead := row/(2*half), row%(2*half)
			n := min(columns-column, len(dst))
			read(dst[:n], (head*2*half+inHead%2*half+inHead/2)*columns+column)
			dst, first = dst[n:], first+n
		}
	}
}

// ropeFactors returns the tensor that holds Llama 3's scaling of RoPE, or none.
func (c *Config) ropeFactors() ([]ggufPart, error) {
	if c.RopeScaling == nil || c.RopeScaling.Type != ropeLlama3 {
		return nil, nil
	}
	factors := make([]float32, c.HeadDim/2)
	for i := range factors {
		factors[i] = float32(rope{theta: c.RopeTheta}.frequency(i, c.HeadDim) / c.rope().frequency(i, c.HeadDim))
	}
	if _, err := llama3Scaling(factors, c.RopeTheta); err != nil {
		return nil, fmt.Errorf("model: GGUF: rope_scaling: %w", err)
	}
	return []ggufPart{{ggml.Header{Name: ropeFactorsName, Shape: []int{len(factors)}}, ggml.F32.String(), nil,
		func(dst []float32, first int) { copy(dst, factors[first:]) }, func() {}}}, nil
}
