package basemodel

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/goart-dev/art/internal/float16"
	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/gguf"
	"github.com/goart-dev/art/lora"
)

// ExportPEFT writes an adapter of the model into a new or empty folder, as PEFT and vLLM read it: for the checkpoint on
// the hub, also where the model is a GGUF file. given names the base model where the file does not say it.
func (b *Base) ExportPEFT(dir, given string, a *lora.Adapter) error {
	if err := errors.Join(b.check(a), newFolder(dir)); err != nil {
		return err
	}
	return a.Save(dir, cmp.Or(b.Original, given))
}

// WriteGGUFAdapter writes an adapter of the model as a GGUF file that llama.cpp adds to a GGUF file of the same model,
// with --lora. Numbers are F32 or F16, to which they are rounded; one that F16 cannot hold is an error. For a layer
// NAME it has
//
//	NAME.lora_a [r, in], NAME.lora_b [out, r]      weight + alpha/r · B·A
//	token_embd.weight.lora_a [vocabulary, r]       of an embedding
//
// with one alpha for all: that of the first layer's scale. B of layers whose scale·r differs has the rest of it.
// Rows are in the order of the file. DoRA, and the embedding or head of a model in which these are one matrix, are
// errors: llama.cpp has no counterpart.
//
// Source: convert_lora_to_gguf.py and src/llama-adapter.cpp, https://github.com/ggml-org/llama.cpp
func (b *Base) WriteGGUFAdapter(w io.Writer, a *lora.Adapter, kind ggml.Type) error {
	cfg, layers := a.Config(), a.Layers()
	switch {
	case kind != ggml.F32 && kind != ggml.F16:
		return fmt.Errorf("an adapter of %v: want F32 or F16", kind)
	case cfg.DoRA:
		return errors.New("the adapter is one of DoRA, which llama.cpp does not compute: export the merged model instead")
	case len(layers) == 0:
		return errors.New("the adapter has no layers")
	}
	if err := errors.Join(b.check(a), b.checkTied(a, "written for llama.cpp")); err != nil {
		return err
	}
	alphaOf := func(l lora.Layer) float64 { return cfg.Scale(l.Name) * float64(cfg.LayerRank(l.Name)) }
	alpha := alphaOf(layers[0])
	var architecture string
	var tensors []gguf.Source
	for _, l := range layers {
		arch, name, row, err := b.Config.GGUFTensor(l.Name + ".weight")
		if err != nil {
			return err
		}
		architecture = arch
		rank := cfg.LayerRank(l.Name)
		first, second := matrix{l.A, rank, l.In}, matrix{make([]float32, len(l.B)), l.Out, rank}
		for i := range l.Out {
			for j, v := range l.B[i*rank:][:rank] {
				second.values[row(i)*rank+j] = v * float32(alphaOf(l)/alpha)
			}
		}
		if l.Embedding {
			first = first.transposed()
		}
		tensors = append(tensors, first.source(name+".lora_a", kind), second.source(name+".lora_b", kind))
	}
	return gguf.Write(w, []gguf.Pair{
		{Key: "general.architecture", Value: architecture}, {Key: "general.type", Value: "adapter"},
		{Key: "adapter.type", Value: "lora"}, {Key: "adapter.lora.alpha", Value: float32(alpha)},
	}, tensors)
}

// matrix is row-major.
type matrix struct {
	values        []float32
	rows, columns int
}

func (m matrix) transposed() matrix {
	out := matrix{make([]float32, len(m.values)), m.columns, m.rows}
	for i, v := range m.values {
		out.values[i%m.columns*m.rows+i/m.columns] = v
	}
	return out
}

func (m matrix) source(name string, kind ggml.Type) gguf.Source {
	return gguf.Source{Name: name, Type: kind, Shape: []int{m.rows, m.columns}, Write: func(w io.Writer) error {
		if kind == ggml.F32 {
			return binary.Write(w, binary.LittleEndian, m.values)
		}
		halves := make([]uint16, len(m.values))
		for i, v := range m.values {
			halves[i] = float16.FromFloat32(v)
			if math.IsInf(float64(float16.Float32(halves[i])), 0) {
				return fmt.Errorf("%s has %g, which is too large for F16: take F32", name, v)
			}
		}
		return binary.Write(w, binary.LittleEndian, halves)
	}}
}
