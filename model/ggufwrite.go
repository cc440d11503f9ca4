package model

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/gguf"
)

// GGUFTypes lists the values of [GGUFOptions.Type].
func GGUFTypes() []string { return ggml.Mixes() }

// GGUFOptions say how a model is written as a GGUF file.
type GGUFOptions struct {
	// Type of the matrices: Q8_0, Q4_0, Q4_K or Q6_K, or Q4_K_M, in which the more sensitive half of two matrices of a
	// layer has six bits. The head has Q6_K at least. Vectors are float32.
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
// is an error.
func (c *Checkpoint) WriteGGUF(w io.Writer, o *GGUFOptions) error {
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
	mix := ggml.Mix(o.Type)
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

// ggufModel returns the architecture under which llama.cpp has the model. What it would compute otherwise is an error.
func (c *Config) ggufModel() (arch string, m ggufModel, err error) {
	kind := c.ModelType
	if kind == ModelTypeMistral {
		kind = ModelTypeLlama
	}
	for name, candidate := range ggufModels {
		if candidate.modelType == kind {
			arch, m = name, candidate
		}
	}
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("model: GGUF: llama.cpp does not build %s: "+format,
				append([]any{cmp.Or(arch, kind)}, args...)...))
		}
	}
	check(arch != "", "at all")
	dense := slices.ContainsFunc(c.design().layers, func(l layer) bool { return !l.experts })
	check(c.NumExperts == 0 || c.NormTopKProb && !dense,
		"with layers without experts, or weights of experts that do not add up to 1")
	check(c.RopeScaling == nil || c.RopeScaling.Type != ropeLlama3 || m.interleaved, "with Llama 3's scaling of RoPE")
	if arch != "gemma3" {
		check(!slices.ContainsFunc(c.design().layers, func(l layer) bool { return l.window > 0 }), "with a sliding window")
		return arch, m, errors.Join(problems...)
	}
	const pattern, layersOf27B = 6, 62
	for i, l := range c.design().layers {
		check((l.window == 0) == (i%pattern == pattern-1), "whose layer %d has a window, or has none", i)
	}
	scalar := c.HeadDim
	if c.NumLayers == layersOf27B {
		scalar = c.HiddenSize / c.NumHeads
	}
	check(c.QueryScalar == float64(scalar), "with query_pre_attn_scalar %v", c.QueryScalar)
	check(c.AttentionSoftCap == 0, "with attn_logit_softcapping")
	return arch, m, errors.Join(problems...)
}

// ggufMetadata returns what ggufHeader reads.
func (c *Config) ggufMetadata(arch, name string) []gguf.Pair {
	out := []gguf.Pair{{Key: "general.architecture", Value: arch}, {Key: "general.type", Value: "model"}}
	if name != "" {
		out = append(out, gguf.Pair{Key: "general.name", Value: name})
	}
	number := func(key string, n int) {
		if n != 0 {
			out = append(out, gguf.Pair{Key: arch + "." + key, Value: uint32(n)}) //nolint:gosec // not negative
		}
	}
	decimal := func(key string, x float64) {
		if x != 0 {
			out = append(out, gguf.Pair{Key: arch + "." + key, Value: float32(x)})
		}
	}
	number("block_count", c.NumLayers)
	number("context_length", c.MaxPositions)
	number("embedding_length", c.HiddenSize)
	number("feed_forward_length", c.IntermediateSize)
	number("attention.head_count", c.NumHeads)
	number("attention.head_count_kv", c.NumKVHeads)
	number("attention.key_length", c.HeadDim)
	number("attention.value_length", c.HeadDim)
	if arch == "llama" || arch == "granite" {
		number("rope.dimension_count", c.HeadDim)
		number("vocab_size", c.VocabSize)
	}
	decimal("attention.layer_norm_rms_epsilon", c.RMSNormEps)
	decimal("rope.freq_base", c.RopeTheta)
	if c.RopeScaling != nil && c.RopeScaling.Type == ropeLinear {
		out = append(out, gguf.Pair{Key: arch + ".rope.scaling.type", Value: ropeLinear})
		decimal("rope.scaling.factor", c.RopeScaling.Factor)
	}
	number("expert_count", c.NumExperts)
	number("expert_used_count", c.ExpertsPerToken)
	number("expert_feed_forward_length", c.MoEIntermediateSize)
	switch arch {
	case "gemma3":
		number("attention.sliding_window", c.SlidingWindow)
		decimal("rope.freq_base_swa", c.RopeLocalTheta)
		decimal("final_logit_softcapping", c.FinalSoftCap)
	case "granite":
		decimal("attention.scale", cmp.Or(c.AttentionMultiplier, 1))
		decimal("embedding_scale", cmp.Or(c.EmbeddingMultiplier, 1))
		decimal("residual_scale", cmp.Or(c.ResidualMultiplier, 1))
		decimal("logit_scale", cmp.Or(c.LogitsScaling, 1))
	}
	return out
}
