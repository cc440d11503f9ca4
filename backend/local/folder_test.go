package local

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/model"
)

// tinyFolder writes the built-in model as a folder, with another configuration.
func tinyFolder(t *testing.T, change func(config map[string]any)) string {
	dir, files := t.TempDir(), tinyFiles(t)
	var config map[string]any
	require.NoError(t, json.Unmarshal(files["config.json"], &config))
	change(config)
	text, err := json.Marshal(config)
	require.NoError(t, err)
	files["config.json"] = text
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return dir
}

// expertsFolder writes a small mixture of experts with random weights, and the tokenizer of the built-in model.
func expertsFolder(t *testing.T) string {
	c := *tinyConfig(t)
	c.Architectures, c.ModelType = []string{"Qwen3MoeForCausalLM"}, "qwen3_moe"
	c.NumExperts, c.ExpertsPerToken, c.MoEIntermediateSize, c.NormTopKProb = 4, 2, 32, true
	w, err := model.Random(&c, 1)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, w.Save(dir))
	for name, content := range tinyFiles(t) {
		if name != "config.json" && name != "model.safetensors" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		}
	}
	return dir
}
