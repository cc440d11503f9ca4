package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestParseConfig_SilentlyOther: settings that transformers 5.24 computes otherwise than a default here would say.
func TestParseConfig_SilentlyOther(t *testing.T) {
	for _, c := range []struct{ fixture, key, value, want string }{
		{"granite", "attention_multiplier", "0.0", "attention_multiplier is 0.0, want a positive number"},
		{"granite", "logits_scaling", "0", "logits_scaling is 0, want a positive number"},
		{"gemma3", "query_pre_attn_scalar", "0", "query_pre_attn_scalar is 0, want a positive number"},
		{"gemma3", "rope_scaling", `{"type": "linear", "factor": 8.0}`, "name it rope_type"},
		{"mistral", "sliding_window", "0", "want null for none"},
		{"llama", "per_layer_config", `{"1": {"rms_norm_eps": 0.5}}`, "per_layer_config is not supported"},
	} {
		text, err := os.ReadFile(filepath.Join("../internal/dev/testdata/architectures", c.fixture, ConfigFile))
		require.NoError(t, err)
		var keys map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(text, &keys))
		keys[c.key] = json.RawMessage(c.value)
		text, err = json.Marshal(keys)
		require.NoError(t, err)
		_, err = ParseConfig(text)
		require.ErrorContains(t, err, c.want, c.key)
	}
}
