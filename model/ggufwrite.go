package model

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/gguf"
)

// GGUFTypes lists the values of [GGUFOptions.Type].
func GGUFTypes() []string { return ggml.Mixes() }

// GGUFOptions say how a model is written as a GGUF file. Zero values are the defaults.
type GGUFOptions struct {
	// Type of the matrices: Q8_0, Q4_0, Q4_K or Q6_K, or Q4_K_M, the default, in which the more sensitive half of two
	// matrices of a layer has six bits. The head has Q6_K at least. Vectors are float32.
	Type string
	// Name is what the file calls the model; empty: nothing.
	Name string
	// Tokenizer is the metadata of the tokenizer, as tokenizer.ToGGUF returns it. A checkpoint that is a GGUF file has
	// its own.
	Tokenizer map[string]any
	// Tensor, if set, is called before each tensor, with the name in the file and the types before and after.
	Tensor func(name, from, to string)
}

// WriteGGUF writes a GGUF file that llama.cpp and [Open] read, with the bits of llama.cpp's llama-quantize. A piece of
// a tensor at a time is in memory. Of a checkpoint that is a GGUF file all metadata is kept, and tensors are quantized
// from what they hold, which for quantized ones is not what the model was trained to. A number that a type cannot hold
// is an error. o may be nil.
func (c *Checkpoint) WriteGGUF(w io.Writer, o *GGUFOptions) error {
	if o == nil {
		o = &GGUFOptions{}
	}
	metadata, tensors, err := c.ggufParts(o)
	if err != nil {
		return err
	}
	value := func(key string) any {
		i := slices.IndexFunc(metadata, func(p gguf.Pair) bool { return p.Key == key })
		if i < 0 {
			return nil
		}
		return metadata[i].Value
	}
	arch, _ := value("general.architecture").(string)
	about := ggml.Model{Architecture: arch, Layers: c.Config.NumLayers, Heads: c.Config.NumHeads,
		KVHeads: c.Config.NumKVHeads, Experts: c.Config.NumExperts}
	headers := make([]ggml.Header, len(tensors))
	for i, t := range tensors {
		headers[i] = t.Header
	}
	mix := ggml.Mix(cmp.Or(o.Type, "Q4_K_M"))
	types, err := mix.Types(about, headers)
	if err != nil {
		return fmt.Errorf("model: GGUF: %w", err)
	}
	metadata = slices.DeleteFunc(metadata, func(p gguf.Pair) bool {
		return p.Key == "general.file_type" || p.Key == "general.quantization_version" || strings.HasPrefix(p.Key, "split.")
	})
	const version = 2 // of the formats of quantized blocks
	metadata = append(metadata, gguf.Pair{Key: "general.file_type", Value: mix.FileType()},
		gguf.Pair{Key: "general.quantization_version", Value: uint32(version)})
	sources := make([]gguf.Source, len(tensors))
	for i, t := range tensors {
		sources[i] = gguf.Source{Name: t.Name, Type: types[i], Shape: t.Shape, Write: func(w io.Writer) error {
			if o.Tensor != nil {
				o.Tensor(t.Name, t.from, types[i].String())
			}
			defer t.release()
			return t.write(w, types[i])
		}}
	}
	return gguf.Write(w, metadata, sources)
}

// ggufPart is a tensor to be written.
type ggufPart struct {
	ggml.Header
	from    string // its type where it is read
	raw     []byte // its data in the type of Header; nil: it is made by read
	read    func(dst []float32, first int)
	release func()
}

// write writes a tensor. Pieces of whole rows are read and quantized side by side.
func (p ggufPart) write(w io.Writer, t ggml.Type) error {
	if p.raw != nil && t == p.Type {
		_, err := w.Write(p.raw)
		return err
	}
	const piece = 1 << 18 // elements, about
	columns, total := 1, Spec{Shape: p.Shape}.size()
	if len(p.Shape) > 0 {
		columns = max(p.Shape[len(p.Shape)-1], 1)
	}
	most := max(piece/columns, 1) * columns
	workers := make([]struct {
		x    []float32
		data []byte
		err  error
	}, min(runtime.GOMAXPROCS(0), (total+most-1)/most))
	for first := 0; first < total; {
		var wg sync.WaitGroup
		used := 0
		for i := range workers {
			n := min(most, total-first)
			if n == 0 {
				break
			}
			used++
			worker, at := &workers[i], first
			wg.Go(func() {
				worker.x = slices.Grow(worker.x[:0], n)[:n]
				worker.data = slices.Grow(worker.data[:0], t.Bytes(n))[:t.Bytes(n)]
				p.read(worker.x, at)
				worker.err = t.Quantize(worker.data, worker.x)
				if bad := (*ggml.ValueError)(nil); errors.As(worker.err, &bad) {
					bad.Index += at
				}
			})
			first += n
		}
		wg.Wait()
		for _, worker := range workers[:used] {
			if worker.err != nil {
				return fmt.Errorf("model: GGUF: %s: %w", p.Name, worker.err)
			}
			if _, err := w.Write(worker.data); err != nil {
				return err
			}
		}
	}
	return nil
}
