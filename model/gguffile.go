package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/brief"
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

func loadGGUFConfig(path string) (*Config, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	c, _, err := ggufConfig(f)
	if err != nil {
		err = fmt.Errorf("%w (in %s)", err, path)
	}
	return c, errors.Join(err, f.Close())
}

func ggufCheckpoint(f *gguf.File) (*Checkpoint, error) {
	config, m, err := ggufConfig(f)
	if err != nil {
		return nil, err
	}
	set := &ggufSet{file: f, model: m, tensors: map[string]ggufTensor{}}
	declared := map[string][]tensor{} // by their name in the file
	for _, t := range config.tensors() {
		declared[t.file] = append(declared[t.file], t)
	}
	for _, name := range f.Names() {
		t, _ := f.Tensor(name)
		list := declared[name]
		switch {
		case name == ropeFactorsName, name == longFactorsName, name == shortFactorsName: // parts of the configuration
		case len(list) == 0:
			set.add(name, ggufTensor{Tensor: t, shape: t.Shape}) // a tensor without a counterpart
		case !list[0].merged:
			set.add(list[0].Name, set.changed(list[0], t))
		case len(t.Shape) != 3 || t.Shape[0] != len(list):
			return nil, fmt.Errorf("model: GGUF: %s is %v, want matrices of %d experts", name, t.Shape, len(list))
		default:
			for e, expert := range list {
				shape := t.Shape[1:]
				set.add(expert.Name, ggufTensor{Tensor: t, shape: shape, first: e * Spec{Shape: shape}.size()})
			}
		}
	}
	if len(set.names) != len(set.tensors) {
		return nil, errors.New("model: GGUF: two tensors of the file are the same one of a checkpoint")
	}
	if err := checkTensors(config, set); err != nil {
		return nil, err
	}
	return &Checkpoint{Config: config, set: set}, nil
}

// ggufSet gives the tensors of a file their names in a checkpoint.
type ggufSet struct {
	file    *gguf.File
	model   ggufModel
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
func (s *ggufSet) changed(as tensor, t gguf.Tensor) ggufTensor {
	out := ggufTensor{Tensor: t, shape: t.Shape, shift: -float32(as.offset)}
	if s.model.interleaved {
		out.heads = as.heads
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

// part is the data of the part of a tensor of a file that is an expert's, or all of it.
func (t ggufTensor) part() []byte {
	if len(t.shape) == len(t.Shape) {
		return t.Data
	}
	return t.Data[t.Type.Bytes(t.first):][:t.Type.Bytes(Spec{Shape: t.shape}.size())]
}

// row returns the blocks of a row of a matrix.
func (t ggufTensor) row(i int) []byte {
	bytes := t.Type.Bytes(t.shape[1])
	at := t.first/t.shape[1] + t.written(i)
	return t.Data[at*bytes:][:bytes]
}

// written is where a row is in the file. llama.cpp interleaves those of some tensors: row i of the first half of a head
// is followed by row i of the second half, with which RoPE pairs it.
func (t ggufTensor) written(row int) int {
	if t.heads == 0 {
		return row
	}
	half := t.shape[0] / t.heads / 2
	head, inHead := row/(2*half), row%(2*half)
	return head*2*half + inHead%half*2 + inHead/half
}

// readRows reads rows in the order of a checkpoint.
func (t ggufTensor) readRows(dst []float32, first int) {
	columns := Spec{Shape: t.shape[1:]}.size()
	for len(dst) > 0 {
		row, column := first/columns, first%columns
		n := min(columns-column, len(dst))
		t.Tensor.Read(dst[:n], t.written(row)*columns+column)
		dst, first = dst[n:], first+n
	}
}

// Names returns the names in a checkpoint.
func (s *ggufSet) Names() []string { return slices.Clone(s.names) }

// Tensor returns a tensor by its name in a checkpoint.
func (s *ggufSet) Tensor(name string) (storedTensor, bool) {
	t, ok := s.tensors[name]
	if !ok {
		return storedTensor{}, false
	}
	stored := storedTensor{Shape: t.shape, Type: t.Type.String(), Data: t.part(), Check: t.Check, Read: t.Read}
	if len(t.shape) == 2 && t.shift == 0 {
		stored.Kind, stored.Row = t.Type, t.row
	}
	return stored, ok
}

// Release lets the system evict the pages of a tensor.
func (s *ggufSet) Release(name string) { s.file.Release(s.tensors[name].Name) }

// Close closes the file.
func (s *ggufSet) Close() error { return s.file.Close() }

// ggufConfig returns the configuration of a model in a GGUF file, as on Hugging Face, and how its tensors were changed.
func ggufConfig(f *gguf.File) (*Config, ggufModel, error) {
	value, _ := f.Value("general.architecture")
	arch, _ := value.(string)
	m, ok := ggufModels[arch]
	if kind, _ := f.Value("general.type"); kind == "adapter" { // of the architecture of its base
		return nil, m, errors.New("model: GGUF: the file is an adapter, not a model: llama.cpp reads it, with --lora; " +
			"here name the run, or the folder of the adapter beside its base model")
	}
	if !ok {
		return nil, m, fmt.Errorf("model: GGUF: general.architecture %q%s is not supported, only %s", brief.Text(arch),
			ggufDescription(f, arch), strings.Join(slices.Sorted(maps.Keys(ggufModels)), ", "))
	}
	if n, ok := f.Value("split.count"); ok && fmt.Sprint(n) != "1" && fmt.Sprint(n) != "0" {
		return nil, m, fmt.Errorf("model: GGUF: the file is one of %v parts: join them with llama-gguf-split --merge", n)
	}
	h := &ggufHeader{file: f, arch: arch}
	c := h.config(m)
	if h.err != nil {
		return nil, m, h.err
	}
	content, err := json.Marshal(c)
	if err != nil {
		return nil, m, err
	}
	config, err := ParseConfig(content)
	return config, m, err
}

// ggufDescription says what a file is whose architecture is not built.
func ggufDescription(f *gguf.File, arch string) string {
	text := func(key string) string { value, _ := f.Value(key); s, _ := value.(string); return brief.Text(s) }
	switch kind := text("general.type"); {
	case arch == "clip", kind == "mmproj":
		return " (the part of a model that reads images or sound, not its text model)"
	case text("general.name") != "":
		return fmt.Sprintf(" (of %q)", text("general.name"))
	}
	return ""
}

// config returns the keys that all architectures share, and those of this one.
func (h *ggufHeader) config(m ggufModel) map[string]any {
	c := map[string]any{
		"architectures": []string{m.architecture}, "model_type": m.modelType, "hidden_act": "silu", "rope_theta": 10000.0,
		"tie_word_embeddings": !h.has("output.weight"),
	}
	for key, from := range map[string]string{
		"hidden_size": "embedding_length", "num_hidden_layers": "block_count", "num_attention_heads": "attention.head_count",
		"max_position_embeddings": "context_length", "rms_norm_eps": "attention.layer_norm_rms_epsilon",
	} {
		h.need(c, key, from)
	}
	h.copy(c, "intermediate_size", "feed_forward_length")
	h.copy(c, "num_key_value_heads", "attention.head_count_kv")
	h.copy(c, "rope_theta", "rope.freq_base")
	size := 0 // of a head, which queries, keys, values and RoPE must share
	if heads := h.int("attention.head_count"); heads > 0 {
		size = h.int("embedding_length") / heads
	}
	for _, key := range []string{"attention.key_length", "rope.dimension_count"} {
		if n := h.int(key); n != 0 {
			size = n
			break
		}
	}
	for _, key := range []string{"attention.value_length", "rope.dimension_count"} {
		if n := h.int(key); n != 0 && n != size {
			h.fail("%s.%s is %d and the heads have %d: not supported", h.arch, key, n, size)
		}
	}
	c["head_dim"] = size
	if t, ok := h.file.Tensor("token_embd.weight"); ok && len(t.Shape) == 2 {
		c["vocab_size"] = t.Shape[0]
	}
	for key, name := range map[string]string{"bos_token_id": "bos", "eos_token_id": "eos"} {
		if id, ok := h.file.Value("tokenizer.ggml." + name + "_token_id"); ok {
			c[key] = id
		}
	}
	h.ropeScaling(c)
	if m.config != nil {
		m.config(h, c)
	}
	for from, key := range ggufForwardKeys {
		if _, there := c[key]; !there {
			h.copy(c, key, from)
		}
	}
	return c
}

// ggufForwardKeys are metadata that change the forward pass, with their names in config.json, where those that an
// architecture does not build are refused.
var ggufForwardKeys = map[string]string{
	"attention.sliding_window": "sliding_window", "attention.scale": "attention_multiplier",
	"attention.clamp_kqv": "clip_qkv", "attention.max_alibi_bias": "alibi", "attention.kv_lora_rank": "kv_lora_rank",
	"attention.chunk_size": "attention_chunk_size", "attn_logit_softcapping": "attn_logit_softcapping",
	"final_logit_softcapping": "final_logit_softcapping", "logit_scale": "logits_scaling",
	"residual_scale": "residual_multiplier", "embedding_scale": "embedding_multiplier",
	"expert_count": "num_experts", "expert_shared_count": "n_shared_experts",
	"expert_weights_scale": "routed_scaling_factor", "ssm.state_size": "mamba_d_state",
	"full_attention_interval": "full_attention_interval",
}

// ropeScaling sets the scaling of RoPE from the metadata, for Llama 3 from the tensor rope_freqs, and for LongRoPE from
// two more.
func (h *ggufHeader) ropeScaling(c map[string]any) {
	if kind := h.text("rope.scaling.type"); kind != "" && kind != "none" {
		s := map[string]any{"rope_type": kind}
		if h.copy(s, originalKey, "rope.scaling.original_context_length") && kind == ropeLinear {
			delete(s, originalKey) // it changes nothing
		}
		switch kind {
		case ropeLong:
			c[originalKey], s["attention_factor"] = s[originalKey], 1.0
			h.copy(s, "attention_factor", "rope.scaling.attn_factor")
			s["short_factor"], s["long_factor"] = h.factors(shortFactorsName), h.factors(longFactorsName)
		case ropeYarn:
			h.yarn(s)
			fallthrough
		default:
			h.need(s, "factor", "rope.scaling.factor")
		}
		c["rope_scaling"] = s
	}
	t, ok := h.file.Tensor(ropeFactorsName)
	if !ok || h.err != nil {
		return
	}
	factors, err := t.Float32s()
	if err == nil {
		theta, _ := c["rope_theta"].(float64)
		c["rope_scaling"], err = llama3Scaling(factors, theta)
	}
	if err != nil {
		h.fail("%s: %w", ropeFactorsName, err)
	}
}

// yarn sets what llama.cpp adds to YaRN. It multiplies the usual attention factor, or with a logarithm's multiplier
// m(factor, 1) / m(factor, multiplier), see [rope.attention], by attn_factor.
func (h *ggufHeader) yarn(s map[string]any) {
	for key, usual := range map[string]float64{ // of others llama.cpp reads them in some architectures only
		"yarn_ext_factor": 1, "yarn_attn_factor": 1, "yarn_beta_fast": usualFast, "yarn_beta_slow": usualSlow,
	} {
		if x := h.number("rope.scaling." + key); x != nil && x != usual {
			h.fail("%s.rope.scaling.%s is %v: not supported", h.arch, key, x)
		}
	}
	factor, _ := h.number("rope.scaling.factor").(float64)
	usual := RopeScaling{Factor: factor}
	attention := usual.mscale(1)
	if by, ok := h.number("rope.scaling.yarn_log_multiplier").(float64); ok && by != 0 {
		attention /= usual.mscale(by)
	}
	if by, ok := h.number("rope.scaling.attn_factor").(float64); ok {
		attention *= by
	}
	if attention != usual.mscale(1) {
		s["attention_factor"] = attention
	}
}

// factors returns the numbers of a tensor.
func (h *ggufHeader) factors(name string) []float32 {
	t, ok := h.file.Tensor(name)
	if !ok {
		h.fail("there is no tensor %s", name)
		return nil
	}
	list, err := t.Float32s()
	if err != nil {
		h.fail("%s: %w", name, err)
	}
	return list
}

// Tensors by which llama.cpp divides the frequencies of RoPE.
const (
	ropeFactorsName  = "rope_freqs.weight"
	longFactorsName  = "rope_factors_long.weight" // of LongRoPE, beyond the original context
	shortFactorsName = "rope_factors_short.weight"
)

// llama3Scaling returns the parameters of Llama 3's scaling for the factors that llama.cpp computed from them. Only
// those of the released models are known: factors between low_freq_factor and high_freq_factor would be ambiguous.
//
//	wavelength = 2 pi theta^(2i/E),  n = original / wavelength,  s = (n - low) / (high - low)
//	factor = 1 for n > high,  factor for n < low,  otherwise 1 / ((1 - s) / factor + s)
//
// Source: Llama3Model.generate_extra_tensors of convert_hf_to_gguf.py
func llama3Scaling(factors []float32, theta float64) (map[string]any, error) {
	const low, high, original = 1.0, 4.0, 8192.0
	most := 1.0
	for _, f := range factors {
		most = max(most, float64(f))
	}
	for i, have := range factors {
		n := original / (2 * math.Pi * math.Pow(theta, float64(i)/float64(len(factors))))
		want := most
		if s := (n - low) / (high - low); n > high {
			want = 1
		} else if n > low {
			want = 1 / ((1-s)/most + s)
		}
		if !(math.Abs(float64(have)-want) <= 1e-4*want) {
			return nil, errors.New("the factors are not those of Llama 3: not supported")
		}
	}
	return map[string]any{
		"rope_type": "llama3", "factor": most, "low_freq_factor": low, "high_freq_factor": high,
		"original_max_position_embeddings": int(original),
	}, nil
}
