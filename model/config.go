package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art/internal/brief"
)

// ConfigFile is the name of the configuration in a model folder.
const ConfigFile = "config.json"

// Config is a model's config.json, under Hugging Face's names. Fields that an architecture does not have are zero:
// [Config.Validate] refuses those that would change what it computes.
type Config struct {
	Architectures    []string `json:"architectures"`
	ModelType        string   `json:"model_type"` // such as "qwen3"; an error lists those that are built
	VocabSize        int      `json:"vocab_size"`
	HiddenSize       int      `json:"hidden_size"`
	IntermediateSize int      `json:"intermediate_size"`
	NumLayers        int      `json:"num_hidden_layers"`
	NumHeads         int      `json:"num_attention_heads"`
	NumKVHeads       int      `json:"num_key_value_heads"`
	HeadDim          int      `json:"head_dim"`
	MaxPositions     int      `json:"max_position_embeddings"` // context, tokens
	RMSNormEps       float64  `json:"rms_norm_eps"`
	RopeTheta        float64  `json:"rope_theta"`
	// RopeScaling extends the context; nil is none.
	RopeScaling *RopeScaling `json:"rope_scaling,omitempty"`
	// PartialRotaryFactor is the part of a head that is rotated, its first numbers; 0 is all.
	PartialRotaryFactor float64 `json:"partial_rotary_factor,omitempty"`

	TieEmbeddings bool   `json:"tie_word_embeddings"`
	HiddenAct     string `json:"hidden_act,omitempty"` // "silu" or "gelu_pytorch_tanh"
	AttentionBias bool   `json:"attention_bias"`
	MLPBias       bool   `json:"mlp_bias,omitempty"`
	// AttentionOutBias is that of the output of attention, where AttentionBias is not.
	AttentionOutBias bool `json:"attention_out_bias,omitempty"`

	// SlidingWindow is the number of tokens that a layer with a window attends to, each token itself included. 0 is no
	// window.
	SlidingWindow int `json:"sliding_window,omitempty"`
	// UseSlidingWindow enables the window of Qwen's models.
	UseSlidingWindow bool `json:"use_sliding_window,omitempty"`
	// LayerTypes is "sliding_attention" or "full_attention" for each layer, for architectures in which only some have the
	// window. nil is "full_attention" for all.
	LayerTypes []string `json:"layer_types,omitempty"`

	// RopeLayers has a 1 for each layer with rotary embeddings, and a 0 for others.
	RopeLayers []int `json:"no_rope_layers,omitempty"`
	// PositionEmbedding is "rope", or of Granite 4's models empty for no positions.
	PositionEmbedding string `json:"position_embedding_type,omitempty"`
	// SharedIntermediateSize is of the MLP of Granite 4's models.
	SharedIntermediateSize int `json:"shared_intermediate_size,omitempty"`

	// Gemma 3's.
	RopeLocalTheta   float64 `json:"rope_local_base_freq,omitempty"` // of layers with a window
	HiddenActivation string  `json:"hidden_activation,omitempty"`    // instead of HiddenAct
	QueryScalar      float64 `json:"query_pre_attn_scalar,omitempty"`
	AttentionSoftCap float64 `json:"attn_logit_softcapping,omitempty"`  // 0 is none
	FinalSoftCap     float64 `json:"final_logit_softcapping,omitempty"` // 0 is none

	// Granite's. 0 is 1.
	EmbeddingMultiplier float64 `json:"embedding_multiplier,omitempty"`
	AttentionMultiplier float64 `json:"attention_multiplier,omitempty"`
	ResidualMultiplier  float64 `json:"residual_multiplier,omitempty"`
	LogitsScaling       float64 `json:"logits_scaling,omitempty"` // logits are divided by it

	// Of mixtures of experts.
	NumExperts          int   `json:"num_experts,omitempty"`
	ExpertsPerToken     int   `json:"num_experts_per_tok,omitempty"`
	MoEIntermediateSize int   `json:"moe_intermediate_size,omitempty"` // of each expert
	NormTopKProb        bool  `json:"norm_topk_prob,omitempty"`        // the weights of a token's experts add up to 1
	DecoderSparseStep   int   `json:"decoder_sparse_step,omitempty"`   // every n-th layer has experts; 0 is 1
	MLPOnlyLayers       []int `json:"mlp_only_layers,omitempty"`       // layers without experts, from 0

	TorchDType string `json:"torch_dtype,omitempty"`
	// EOSTokenID is a number or a list of numbers. It is only kept: the tokenizer's files decide what ends a reply.
	EOSTokenID json.RawMessage `json:"eos_token_id,omitempty"`

	// wrapper is of a model that reads images too, whose text model this is. nil: of none.
	wrapper *wrapper
	// extra are the keys of a file that are not read, and are written back.
	extra map[string]json.RawMessage
}

// The entries of Config.LayerTypes.
const (
	layerFull    = "full_attention"
	layerSliding = "sliding_attention"
)

// LoadConfig reads the configuration of a model: config.json in a folder, or the header of a GGUF file.
func LoadConfig(path string) (*Config, error) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		return loadGGUFConfig(path)
	}
	data, err := readBounded(filepath.Join(path, ConfigFile))
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	c, err := ParseConfig(data)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return c, nil
}

// mostConfig bounds a config.json: published ones have some kilobytes.
const mostConfig = 8 << 20

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, mostConfig+1))
	if err == nil && len(data) > mostConfig {
		err = fmt.Errorf("%s has more than %d bytes: it is no configuration of a model", path, mostConfig)
	}
	return data, errors.Join(err, f.Close())
}

// ParseConfig reads a config.json, as transformers 4 or 5 writes it, with transformers' defaults for absent keys. A key
// that changes the computation in a way that is not supported is an error.
func ParseConfig(data []byte) (*Config, error) {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, fmt.Errorf("model: %s: %w", ConfigFile, err)
	}
	c := &Config{}
	if err := c.read(keys); err != nil {
		return nil, fmt.Errorf("model: %s: %w", ConfigFile, err)
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Config) read(keys map[string]json.RawMessage) error {
	keys, err := c.unwrap(keys)
	if err != nil {
		return err
	}
	a, err := c.readArchitecture(keys) // first: another architecture's keys may have other types
	if err != nil {
		return err
	}
	if err := c.readKnown(keys); err != nil {
		return err
	}
	if err := c.readRope(keys, a.rope); err != nil {
		return err
	}
	if _, ok := keys["rms_norm_eps"]; !ok {
		c.RMSNormEps = 1e-6
	}
	if _, ok := keys["hidden_act"]; !ok && !slices.Contains(a.reads, "hidden_activation") {
		c.HiddenAct = "silu"
	}
	if c.HeadDim == 0 && c.NumHeads > 0 {
		c.HeadDim = c.HiddenSize / c.NumHeads
	}
	if c.NumKVHeads == 0 {
		c.NumKVHeads = c.NumHeads
	}
	if len(c.MLPOnlyLayers) == 0 {
		c.MLPOnlyLayers = nil
	}
	if a.defaults != nil {
		if err := a.defaults(c, keys); err != nil {
			return err
		}
	}
	if c.RopeTheta == 0 && absent(keys["rope_theta"]) {
		c.RopeTheta = 10000
	}
	for key, v := range keys { // those that are not read are kept
		if _, read := otherSpellings[key]; read || key == "rope_parameters" || slices.Contains(configKeys, key) ||
			key == originalKey && c.longRope() {
			continue
		}
		data, err := json.Marshal(v) // compact, so that it is written as it was read
		if err != nil {
			return err
		}
		if c.extra == nil {
			c.extra = map[string]json.RawMessage{}
		}
		c.extra[key] = data
	}
	return nil
}

func (c *Config) readArchitecture(keys map[string]json.RawMessage) (*architecture, error) {
	if err := c.readType(keys); err != nil {
		return nil, err
	}
	a, err := c.architecture()
	if what := describe(c, keys); err != nil && what != "" {
		err = fmt.Errorf("the checkpoint is %s: %w", what, err)
	}
	return a, err
}

func (c *Config) readType(keys map[string]json.RawMessage) error {
	for key, to := range map[string]any{"model_type": &c.ModelType, "architectures": &c.Architectures} {
		if v, ok := keys[key]; ok {
			if err := json.Unmarshal(v, to); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return nil
}

// readKnown decodes the keys of Config but RoPE's. encoding/json alone would accept "Vocab_Size" for a name too.
func (c *Config) readKnown(keys map[string]json.RawMessage) error {
	known := map[string]json.RawMessage{}
	for _, key := range configKeys {
		if v, ok := keys[key]; ok && key != "rope_scaling" {
			known[key] = v
		}
	}
	for other, key := range otherSpellings {
		switch v := keys[other]; {
		case absent(v):
		case absent(known[key]):
			known[key] = v
		case key == "num_experts" && string(v) != string(known[key]):
			return fmt.Errorf("%s is %s and %s %s: keep one", other, v, key, known[key])
		}
	}
	data, err := json.Marshal(known)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, c)
}

func absent(v json.RawMessage) bool { return v == nil || string(v) == "null" }

var configKeys = func() (keys []string) {
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		if key, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}()

// otherSpellings maps keys of transformers 5 to their names in 4, which are the ones written.
var otherSpellings = map[string]string{"dtype": "torch_dtype", "num_local_experts": "num_experts"}

// MarshalJSON writes c with the names of transformers 4, which 5 reads too, and after that the keys that were not read.
func (c Config) MarshalJSON() ([]byte, error) {
	text, err := c.marshalText()
	if err != nil || c.wrapper == nil {
		return text, err
	}
	return c.wrapper.wrap(&c, text)
}

// marshalText writes c without the model that its text model is a part of.
func (c Config) marshalText() ([]byte, error) {
	type plain Config
	data, err := json.Marshal(struct {
		plain
		AttentionSoftCap    decimal `json:"attn_logit_softcapping,omitempty"`
		FinalSoftCap        decimal `json:"final_logit_softcapping,omitempty"`
		EmbeddingMultiplier decimal `json:"embedding_multiplier,omitempty"`
		AttentionMultiplier decimal `json:"attention_multiplier,omitempty"`
		ResidualMultiplier  decimal `json:"residual_multiplier,omitempty"`
		LogitsScaling       decimal `json:"logits_scaling,omitempty"`
	}{
		plain(c), decimal(c.AttentionSoftCap), decimal(c.FinalSoftCap),
		decimal(c.EmbeddingMultiplier), decimal(c.AttentionMultiplier), decimal(c.ResidualMultiplier),
		decimal(c.LogitsScaling),
	})
	others := maps.Clone(c.extra)
	set := func(key, value string) {
		if others == nil {
			others = map[string]json.RawMessage{}
		}
		others[key] = json.RawMessage(value)
	}
	a, unknown := c.architecture()
	windowed := unknown == nil && a.windowed || c.UseSlidingWindow
	if c.SlidingWindow == 0 && windowed { // without the key there is one
		set("sliding_window", "null")
	}
	if c.longRope() { // transformers 4 looks for it here only
		set(originalKey, strconv.Itoa(c.RopeScaling.OriginalPositions))
	}
	if err != nil || len(others) == 0 {
		return data, err
	}
	more, err := json.Marshal(others) // sorted
	if err != nil {
		return nil, err
	}
	return slices.Concat(data[:len(data)-1], []byte{','}, more[1:]), nil
}

// decimal is a number that transformers 5 accepts with a decimal point only.
type decimal float64

// MarshalJSON writes 6 as 6.0.
func (d decimal) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(float64(d))
	if err == nil && !bytes.ContainsAny(data, ".e") {
		data = append(data, ".0"...)
	}
	return data, err
}

// Validate lists every problem.
func (c *Config) Validate() error {
	a, err := c.architecture()
	if err != nil {
		return fmt.Errorf("model: config: %w", err)
	}
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("model: config: "+format, args...))
		}
	}
	c.checkSizes(check)
	check(c.HeadDim%2 == 0, "head_dim %d is odd: rotary embeddings need pairs", c.HeadDim)
	check(positive(c.RMSNormEps), "rms_norm_eps is %v, want a positive number", c.RMSNormEps)
	check(positive(c.RopeTheta), "rope_theta is %v, want a positive number", c.RopeTheta)
	if c.RopeScaling != nil {
		c.RopeScaling.check(c, a.rope, check)
	}
	if p := c.PartialRotaryFactor; p != 0 {
		check(p > 0 && p <= 1, "partial_rotary_factor is %v, want a positive number up to 1", p)
		check(c.rope().size >= 2 && c.rope().size%2 == 0, "partial_rotary_factor %v of head_dim %d is %d numbers, want pairs",
			p, c.HeadDim, c.rope().size)
	}
	if c.NumLayers <= mostLayers {
		a.describe(c, check).checkKinds(c, check)
	}
	return brief.Errors(append(errs, c.checkForward(a)))
}

// checker reports a problem unless ok.
type checker func(ok bool, format string, args ...any)

const (
	mostSize   = 1 << 24
	mostLayers = 1 << 10
)

// checkSizes bounds all sizes, so that no product of two overflows and the tensors can be listed.
func (c *Config) checkSizes(check checker) {
	for _, f := range []struct {
		name        string
		value, most int
	}{
		{"vocab_size", c.VocabSize, mostSize}, {"hidden_size", c.HiddenSize, mostSize},
		{"intermediate_size", c.IntermediateSize, mostSize},
		{"num_hidden_layers", c.NumLayers, mostLayers}, {"num_attention_heads", c.NumHeads, mostSize},
		{"num_key_value_heads", c.NumKVHeads, mostSize}, {"head_dim", c.HeadDim, mostSize},
		{"max_position_embeddings", c.MaxPositions, mostSize},
	} {
		check(f.value > 0 && f.value <= f.most, "%s is %d, want 1 to %d", f.name, f.value, f.most)
	}
	check(c.NumKVHeads > 0 && c.NumHeads%c.NumKVHeads == 0,
		"num_attention_heads %d is not a multiple of num_key_value_heads %d", c.NumHeads, c.NumKVHeads)
	check(c.HeadDim <= 0 || c.NumHeads <= mostSize/c.HeadDim, "%d heads of %d are more than %d", c.NumHeads, c.HeadDim,
		mostSize)
	check(c.SlidingWindow >= 0 && c.SlidingWindow <= mostSize, "sliding_window is %d, want 0 to %d", c.SlidingWindow,
		mostSize)
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// Save writes c as dir's config.json.
func (c *Config) Save(dir string) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, ConfigFile), append(data, '\n'), 0o644)
}
