package model

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/brief"
	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/safetensors"
)

// WeightsFile is the name of the weights in a model folder.
const WeightsFile = "model.safetensors"

// Checkpoint is a checkpoint in mapped files. Its tensors are read on demand.
type Checkpoint struct {
	Config *Config
	// Int8Activations has products with matrices that are quantized in the file and kept so ([Stored]) round their
	// activations to 8 bits for 32 numbers; the gradient goes straight through, and adapters take what is not rounded.
	// Set it before weights are copied to a device. Where none of them are kept it is an error.
	Int8Activations bool

	set tensorSet
}

type tensorSet interface {
	Names() []string
	Tensor(name string) (storedTensor, bool)
	Release(name string)
	Close() error
}

type storedTensor struct {
	Shape []int
	Type  string // of the elements
	Data  []byte
	Check func() error                   // why it cannot be converted to float32
	Read  func(dst []float32, first int) // converts len(dst) elements from element first on

	// Of a GGUF file: the type of the elements, and a row in its blocks.
	Kind ggml.Type
	Row  func(i int) []byte
}

func (t storedTensor) float32s() []float32 {
	data := make([]float32, Spec{Shape: t.Shape}.size())
	t.Read(data, 0)
	return data
}

// folderSet is the safetensors of a folder, or one file of them.
type folderSet struct{ *safetensors.Set }

// Tensor returns the tensor of that name.
func (s folderSet) Tensor(name string) (storedTensor, bool) {
	t, ok := s.Set.Tensor(name)
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
	checkpoint, err := openSet(c, folderSet{set})
	if err != nil {
		return nil, errors.Join(err, set.Close())
	}
	return checkpoint, nil
}

func openSet(c *Config, set tensorSet) (*Checkpoint, error) {
	if c.wrapper != nil {
		var err error
		if set, err = c.tower(set); err != nil {
			return nil, err
		}
	}
	return &Checkpoint{Config: c, set: set}, checkTensors(c, set)
}

// Skipped lists the tensors of a model that reads images which are of other parts than its text model. They are not
// read; [Checkpoint.Save] copies them as they are.
func (c *Checkpoint) Skipped() []string {
	if t, ok := c.set.(*towerSet); ok {
		return slices.Clone(t.skipped)
	}
	return nil
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
	if p.rounds = c.Int8Activations; p.rounds && !c.KeepsQuantized(device, matrices) {
		return nil, errors.New("model: activations of int8 need a file with quantized matrices that stay as they are " +
			"stored, on the CPU device")
	}
	for _, s := range c.Config.Specs() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		stored, _ := c.set.Tensor(s.Name)
		if err := p.addStored(device, s, stored); err != nil {
			return nil, err
		}
		c.set.Release(s.Name)
	}
	return p, nil
}

// KeepsQuantized reports whether matrices that are quantized in the file stay so on a device, which Int8Activations
// needs.
func (c *Checkpoint) KeepsQuantized(device compute.Backend, matrices dtypes.DType) bool {
	return matrices == Stored && slices.ContainsFunc(c.Config.Specs(), func(s Spec) bool {
		stored, _ := c.set.Tensor(s.Name)
		if len(s.Shape) != 2 {
			return false
		}
		_, ok := stored.quantizedBytes(device, s)
		return ok && stored.Kind != ggml.F16
	})
}

// WeightBytes is what the weights take on a device, with matrices of a type: see [Weights.ParamsAs].
func (c *Checkpoint) WeightBytes(device compute.Backend, matrices dtypes.DType) (bytes float64) {
	for _, t := range c.TensorBytes(device, matrices) {
		bytes += t.Held
	}
	return bytes
}

// TensorBytes is what a tensor of a checkpoint takes.
type TensorBytes struct {
	Spec
	Type string  // of its numbers in the file
	File int     // bytes in the file
	Held float64 // bytes on a device
}

// TensorBytes lists what the tensors take in the files, and on a device with matrices of a type. No data is read.
func (c *Checkpoint) TensorBytes(device compute.Backend, matrices dtypes.DType) (list []TensorBytes) {
	for _, s := range c.Config.Specs() {
		stored, _ := c.set.Tensor(s.Name)
		list = append(list, TensorBytes{s, stored.Type, len(stored.Data), stored.bytes(device, s, matrices)})
	}
	return list
}

// bytes is what a tensor takes on a device.
func (t storedTensor) bytes(device compute.Backend, s Spec, matrices dtypes.DType) float64 {
	if len(s.Shape) != 2 {
		return 4 * float64(s.size())
	}
	switch matrices {
	case dtypes.Int8:
		return float64(s.size()) + 4*float64(s.Shape[0]) // a scale for each row
	case Stored:
		if n, ok := t.quantizedBytes(device, s); ok {
			return float64(n)
		}
		if t.isBFloat16(device) {
			return 2 * float64(s.size())
		}
		return 4 * float64(s.size())
	}
	return float64(matrices.Size()) * float64(s.size())
}

// quantizedBytes is what a matrix takes on a device that keeps its blocks; false: it does not.
func (t storedTensor) quantizedBytes(device compute.Backend, s Spec) (int, bool) {
	packer, ok := device.(graphx.QuantizedPacker)
	if !ok || t.Row == nil {
		return 0, false
	}
	return packer.QuantizedBytes(t.Kind, s.Shape[0], s.Shape[1])
}

// checkScales reports a scale that is infinite or NaN. A device that keeps blocks checks them as it reads them.
func (t storedTensor) checkScales(s Spec) error {
	if t.Row == nil {
		return nil
	}
	for i := range s.Shape[0] {
		if !t.Kind.Finite(t.Row(i)) {
			return fmt.Errorf("model: %s: row %d has a scale that is infinite or NaN", s.Name, i)
		}
	}
	return nil
}

func (t storedTensor) isBFloat16(device compute.Backend) bool {
	return t.Type == "BF16" && graphx.MultipliesBFloat16(device)
}

// addStored copies a tensor of a checkpoint to the device.
func (p *Params) addStored(device compute.Backend, s Spec, stored storedTensor) error {
	if p.matrices != Stored || len(s.Shape) != 2 {
		if err := stored.checkScales(s); err != nil {
			return err
		}
		return p.add(device, s.Name, s.Shape, stored.Read)
	}
	if _, ok := stored.quantizedBytes(device, s); ok {
		buffer, err := device.(graphx.QuantizedPacker).PackQuantized(
			stored.Kind, s.Shape[0], s.Shape[1], p.rounds, stored.Row)
		if err != nil {
			return fmt.Errorf("model: %s: %w", s.Name, err)
		}
		x, err := tensors.FromBuffer(buffer)
		p.Names, p.Tensors = append(p.Names, s.Name), append(p.Tensors, x)
		return err
	}
	as := Params{matrices: dtypes.Float32}
	if stored.isBFloat16(device) {
		as.matrices = dtypes.BFloat16
	}
	err := as.add(device, s.Name, s.Shape, stored.Read)
	p.Names, p.Tensors = append(p.Names, as.Names...), append(p.Tensors, as.Tensors...)
	return err
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
	checkpoint, err := openSet(c, folderSet{file.Set()})
	if err != nil {
		return nil, err
	}
	return checkpoint, nil
}

func checkTensors(c *Config, set tensorSet) error {
	var errs []error
	known := map[string]bool{}
	for _, s := range c.Specs() {
		known[s.Name] = true
		stored, ok := set.Tensor(s.Name)
		if !ok {
			errs = append(errs, fmt.Errorf("model: the checkpoint has no %s", s.Name))
		} else if !slices.Equal(stored.Shape, s.Shape) {
			errs = append(errs, fmt.Errorf("model: %s is %v, the configuration requires %v", s.Name, stored.Shape, s.Shape))
		} else if err := stored.Check(); err != nil {
			errs = append(errs, fmt.Errorf("model: %s: %w", s.Name, err))
		}
	}
	for _, name := range set.Names() {
		switch {
		case known[name]:
		case name == headLayer+weightSuffix: // of a tied model
			errs = append(errs, checkCopy(c, set))
		case strings.HasSuffix(name, ".rotary_emb.inv_freq"): // a table in old files that nobody reads
		default:
			errs = append(errs,
				fmt.Errorf("model: the checkpoint has %s, which %s does not: is it another architecture?", name, c.ModelType))
		}
	}
	return brief.Errors(errs)
}

// checkCopy reports a head that differs from the embedding that it is tied to: Qwen/Qwen3-0.6B, for one, has a copy.
func checkCopy(c *Config, set tensorSet) error {
	name := c.root() + embedName + weightSuffix
	head, _ := set.Tensor(headLayer + weightSuffix)
	embed, ok := set.Tensor(name)
	if ok && (head.Type != embed.Type || !slices.Equal(head.Shape, embed.Shape) || !bytes.Equal(head.Data, embed.Data)) {
		return fmt.Errorf("model: the checkpoint has a %s that differs from %s: set tie_word_embeddings to false in %s",
			headLayer+weightSuffix, name, ConfigFile)
	}
	return nil
}

// Types of saved tensors.
const (
	Float32  = "float32"
	BFloat16 = "bfloat16"
)

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
// Of a model that reads images it writes all parts, under the names that they were read by, those that are not the text
// model's as they are.
//
// One tensor at a time is in memory. config.json is written last: without it a folder is not a model. opts may be nil.
func (c *Checkpoint) Save(dir string, opts *SaveOptions) error {
	if opts == nil {
		opts = &SaveOptions{}
	}
	written := *c.Config
	written.TorchDType = cmp.Or(opts.DType, Float32)
	var skipped []safetensors.Source
	if t, ok := c.set.(*towerSet); ok {
		skipped = t.sources()
	}
	return save(dir, &written, *opts, skipped, func(s Spec) []float32 {
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
	return save(dir, w.Config, SaveOptions{}, nil, func(Spec) []float32 {
		at++
		return w.Tensors[at-1].Data
	})
}

// save writes a model, and other tensors. values returns those of the model, in the order of Specs.
func save(dir string, c *Config, o SaveOptions, others []safetensors.Source, values func(Spec) []float32) error {
	dtype, ok := map[string]safetensors.DType{"": safetensors.F32, Float32: safetensors.F32,
		BFloat16: safetensors.BF16}[o.DType]
	if !ok || o.ShardBytes < 0 {
		return fmt.Errorf("model: save: DType is %q and ShardBytes %d: want %s or %s, and a number that is not negative; "+
			"no quantized type is written, whose rounding would change what was trained",
			o.DType, o.ShardBytes, Float32, BFloat16)
	}
	var sources []safetensors.Source
	for _, s := range c.Specs() {
		sources = append(sources,
			safetensors.Source{Name: c.fileName(s.Name), DType: dtype, Shape: s.Shape, Write: func(w io.Writer) error {
				v := values(s)
				if o.Edit != nil {
					if err := o.Edit(s.Name, v); err != nil {
						return err
					}
				}
				return writeValues(w, dtype, v)
			}})
	}
	if err := saveShards(dir, shards(append(sources, others...), o.ShardBytes)); err != nil {
		return fmt.Errorf("model: save: %w", err)
	}
	return c.Save(dir)
}

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

func saveSources(path string, sources []safetensors.Source) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	err = safetensors.WriteSources(out, sources, map[string]string{"format": "pt"})
	return errors.Join(err, out.Flush(), f.Sync(), f.Close())
}
