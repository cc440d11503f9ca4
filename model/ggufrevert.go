package model

import (
	"fmt"
	"maps"
	"slices"

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
	for _, t := range c.Config.tensors() {
		stored, _ := c.set.Tensor(t.Name)
		release := func() { c.set.Release(t.Name) }
		if t.file == "" {
			return nil, fmt.Errorf("model: GGUF: llama.cpp has no name for %s", t.Name)
		}
		read := m.reverted(t, stored.Read)
		if !t.merged {
			tensors = append(tensors, ggufPart{ggml.Header{Name: t.file, Shape: t.Shape}, stored.Type, nil, read, release})
			continue
		}
		i, ok := experts[t.file]
		if !ok {
			i, experts[t.file] = len(tensors), len(tensors)
			tensors = append(tensors, ggufPart{ggml.Header{Name: t.file, Shape: append([]int{0}, t.Shape...)}, stored.Type,
				nil, func([]float32, int) {}, func() {}})
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

// reverted makes the changes that ggufSet undoes.
func (m ggufModel) reverted(t tensor, read func([]float32, int)) func([]float32, int) {
	if t.offset != 0 {
		return func(dst []float32, first int) {
			read(dst, first)
			for i := range dst {
				dst[i] += float32(t.offset)
			}
		}
	}
	if !m.interleaved || t.heads == 0 {
		return read
	}
	columns, half := Spec{Shape: t.Shape[1:]}.size(), t.Shape[0]/t.heads/2
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

// ropeFactors returns the tensors that hold Llama 3's scaling of RoPE, or the factors of LongRoPE.
func (c *Config) ropeFactors() ([]ggufPart, error) {
	part := func(name string, factors []float32) ggufPart {
		return ggufPart{ggml.Header{Name: name, Shape: []int{len(factors)}}, ggml.F32.String(), nil,
			func(dst []float32, first int) { copy(dst, factors[first:]) }, func() {}}
	}
	switch s := c.RopeScaling; {
	case s != nil && s.Type == ropeLong:
		rounded := func(list []float64) (out []float32) {
			for _, x := range list {
				out = append(out, float32(x))
			}
			return out
		}
		return []ggufPart{part(longFactorsName, rounded(s.LongFactors)), part(shortFactorsName, rounded(s.ShortFactors))}, nil
	case s == nil || s.Type != ropeLlama3:
		return nil, nil
	}
	factors := make([]float32, c.HeadDim/2)
	for i := range factors {
		factors[i] = float32(rope{theta: c.RopeTheta, size: c.HeadDim}.frequency(i) / c.rope().frequency(i))
	}
	if _, err := llama3Scaling(factors, c.RopeTheta); err != nil {
		return nil, fmt.Errorf("model: GGUF: rope_scaling: %w", err)
	}
	return []ggufPart{part(ropeFactorsName, factors)}, nil
}
