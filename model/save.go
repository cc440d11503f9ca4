package model

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/goart-dev/art/internal/safetensors"
)

// Types of saved tensors.
const (
	Float32  = "float32"
	BFloat16 = "bfloat16"
)

// indexFile lists the shards of a model.
const indexFile = "model.safetensors.index.json"

// SaveOptions say how a model is written. Zero values are the defaults.
type SaveOptions struct {
	// DType of all tensors: [Float32], the default, or [BFloat16], to which values are rounded, ties to even.
	DType string
	// ShardBytes bounds the tensors of a file. A larger tensor has a file of its own. Default: one file.
	ShardBytes int64
	// Edit changes the values of a tensor in place before they are written, such as by adding an adapter. nil changes
	// nothing.
	Edit func(name string, values []float32) error
}

// Save writes config.json and the tensors as safetensors, with an index if there are shards, into an existing folder.
// One tensor at a time is in memory. config.json is written last: without it a folder is not a model. opts may be nil.
func (c *Checkpoint) Save(dir string, opts *SaveOptions) error {
	if opts == nil {
		opts = &SaveOptions{}
	}
	written := *c.Config
	written.TorchDType = cmp.Or(opts.DType, Float32)
	return save(dir, &written, *opts, func(s Spec) []float32 {
		t, _ := c.set.Tensor(s.Name)
		values := t.float32s()
		c.set.Release(s.Name)
		return values
	})
}

// Save writes config.json and model.safetensors in float32.
func (w *Weights) Save(dir string) error {
	if err := w.check(); err != nil {
		return err
	}
	at := 0
	return save(dir, w.Config, SaveOptions{}, func(Spec) []float32 {
		at++
		return w.Tensors[at-1].Data
	})
}

// save writes a model. values returns its tensors, in the order of Specs.
func save(dir string, c *Config, o SaveOptions, values func(Spec) []float32) error {
	dtype, ok := map[string]safetensors.DType{"": safetensors.F32, Float32: safetensors.F32,
		BFloat16: safetensors.BF16}[o.DType]
	if !ok || o.ShardBytes < 0 {
		return fmt.Errorf("model: save: DType is %q and ShardBytes %d: want %s or %s, and a number that is not negative",
			o.DType, o.ShardBytes, Float32, BFloat16)
	}
	var sources []safetensors.Source
	for _, s := range c.Specs() {
		sources = append(sources,
			safetensors.Source{Name: s.Name, DType: dtype, Shape: s.Shape, Write: func(w io.Writer) error {
				v := values(s)
				if o.Edit != nil {
					if err := o.Edit(s.Name, v); err != nil {
						return err
					}
				}
				return writeValues(w, dtype, v)
			}})
	}
	if err := saveShards(dir, shards(sources, o.ShardBytes)); err != nil {
		return fmt.Errorf("model: save: %w", err)
	}
	return c.Save(dir)
}

// writeValues converts numbers to a type and writes them.
func writeValues(w io.Writer, dtype safetensors.DType, values []float32) error {
	const most = 1 << 16 // numbers converted at once
	buffer := make([]byte, 0, 4*min(most, len(values)))
	for len(values) > 0 {
		n := min(most, len(values))
		buffer = buffer[:0]
		for _, v := range values[:n] {
			if dtype == safetensors.BF16 {
				buffer = binary.LittleEndian.AppendUint16(buffer, toBFloat16(v))
			} else {
				buffer = binary.LittleEndian.AppendUint32(buffer, math.Float32bits(v))
			}
		}
		if _, err := w.Write(buffer); err != nil {
			return err
		}
		values = values[n:]
	}
	return nil
}

// toBFloat16 rounds to the nearest bfloat16, ties to even. A NaN stays one.
func toBFloat16(v float32) uint16 {
	b := math.Float32bits(v)
	if v != v {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// shards distributes tensors over files of at most bound bytes; 0 is no bound.
func shards(sources []safetensors.Source, bound int64) [][]safetensors.Source {
	var out [][]safetensors.Source
	var sum uint64
	for _, s := range sources {
		size, _ := s.Size() // an error is one of WriteSources too
		if len(out) == 0 || bound > 0 && sum+size > uint64(bound) {
			out, sum = append(out, nil), 0
		}
		out[len(out)-1] = append(out[len(out)-1], s)
		sum += size
	}
	return out
}

// saveShards writes one file, or several with an index.
func saveShards(dir string, shards [][]safetensors.Source) error {
	if len(shards) == 1 {
		return saveSources(filepath.Join(dir, WeightsFile), shards[0])
	}
	var index struct {
		Metadata struct {
			TotalSize uint64 `json:"total_size"` // bytes of all tensors
		} `json:"metadata"`
		WeightMap map[string]string `json:"weight_map"`
	}
	index.WeightMap = map[string]string{}
	for i, shard := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		if err := saveSources(filepath.Join(dir, name), shard); err != nil {
			return err
		}
		for _, s := range shard {
			size, _ := s.Size() // it was written
			index.WeightMap[s.Name], index.Metadata.TotalSize = name, index.Metadata.TotalSize+size
		}
	}
	content, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, indexFile), append(content, '\n'), 0o644)
}

// saveSources writes a file.
func saveSources(path string, sources []safetensors.Source) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	err = safetensors.WriteSources(out, sources, map[string]string{"format": "pt"})
	return errors.Join(err, out.Flush(), f.Sync(), f.Close())
}
