package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// ConfigFile is the name of the configuration in a model folder.
const ConfigFile = "config.json"

// ModelTypeQwen3 is the architecture that this package builds.
const ModelTypeQwen3 = "qwen3"

// Config is the shape of a model, in Hugging Face's words and JSON.
type Config struct {
	Architectures    []string `json:"architectures"`
	ModelType        string   `json:"model_type"`
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
	TieEmbeddings    bool     `json:"tie_word_embeddings"`
	HiddenAct        string   `json:"hidden_act"`
	AttentionBias    bool     `json:"attention_bias"`
	TorchDType       string   `json:"torch_dtype,omitempty"`
	// EOSTokenID is a number or a list of numbers; it is carried along, the tokenizer's files decide what ends a reply.
	EOSTokenID json.RawMessage `json:"eos_token_id,omitempty"`
}

// unsupported are keys of config.json that change the computation and that this package does not build. Each value is
// accepted when it is absent, null or false.
var unsupported = []string{"rope_scaling", "rope_parameters", "use_sliding_window", "quantization_config"}

// LoadConfig reads dir's config.json.
func LoadConfig(dir string) (*Config, error) {
	data, err := os.ReadFile(filepath.Join(dir, ConfigFile))
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return ParseConfig(data)
}

// ParseConfig reads a config.json.
func ParseConfig(data []byte) (*Config, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("model: %s: %w", ConfigFile, err)
	}
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, fmt.Errorf("model: %s: %w", ConfigFile, err)
	}
	if c.HeadDim == 0 && c.NumHeads > 0 {
		c.HeadDim = c.HiddenSize / c.NumHeads
	}
	if c.NumKVHeads == 0 {
		c.NumKVHeads = c.NumHeads
	}
	for _, key := range unsupported {
		if v := string(raw[key]); v != "" && v != "null" && v != "false" {
			return nil, fmt.Errorf("model: %s: %s is not supported (found %s)", ConfigFile, key, v)
		}
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &c, nil
}

// Validate reports all that is wrong with c.
func (c *Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("model: config: "+format, args...))
		}
	}
	check(c.ModelType == ModelTypeQwen3, "model_type %q is not supported: this version builds %q", c.ModelType, ModelTypeQwen3)
	check(c.HiddenAct == "silu", "hidden_act %q is not supported: qwen3 has silu", c.HiddenAct)
	check(!c.AttentionBias, "attention_bias is not supported")
	const most = 1 << 24
	for _, f := range []struct {
		name  string
		value int
	}{
		{"vocab_size", c.VocabSize}, {"hidden_size", c.HiddenSize}, {"intermediate_size", c.IntermediateSize},
		{"num_hidden_layers", c.NumLayers}, {"num_attention_heads", c.NumHeads}, {"num_key_value_heads", c.NumKVHeads},
		{"head_dim", c.HeadDim}, {"max_position_embeddings", c.MaxPositions},
	} {
		check(f.value > 0 && f.value <= most, "%s is %d, want 1 to %d", f.name, f.value, most)
	}
	check(c.NumKVHeads > 0 && c.NumHeads%c.NumKVHeads == 0, "num_attention_heads %d is not a multiple of num_key_value_heads %d", c.NumHeads, c.NumKVHeads)
	check(c.HeadDim%2 == 0, "head_dim %d is odd: rotary positions need pairs", c.HeadDim)
	check(c.RMSNormEps > 0 && !math.IsInf(c.RMSNormEps, 0), "rms_norm_eps is %v, want a positive number", c.RMSNormEps)
	check(c.RopeTheta > 0 && !math.IsInf(c.RopeTheta, 0), "rope_theta is %v, want a positive number", c.RopeTheta)
	return errors.Join(errs...)
}

// Save writes c as dir's config.json.
func (c *Config) Save(dir string) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, ConfigFile), append(data, '\n'), 0o644)
}
