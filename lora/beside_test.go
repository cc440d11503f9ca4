package lora

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNew_BesideOtherParts: PEFT is told not to adapt layers of other parts with the same names, and the file is read
// as the same adapter.
func TestNew_BesideOtherParts(t *testing.T) {
	layers := []LayerShape{
		{Name: "model.language_model.layers.0.self_attn.q_proj", In: 4, Out: 4},
		{Name: "model.language_model.layers.0.mlp.up_proj", In: 4, Out: 8}, {Name: "lm_head", In: 4, Out: 9},
	}
	a, err := New(Config{Rank: 2, Targets: []string{"q_proj", "lm_head"}}, layers, 1)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, a.Save(dir, "base"))
	data, err := os.ReadFile(filepath.Join(dir, configFile))
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, json.Unmarshal(data, &config))
	require.Equal(t, `(model\.language_model\..*\.)?(q_proj|lm_head)`, config["target_modules"])
	back, err := Load(dir)
	require.NoError(t, err)
	require.Equal(t, a.Layers(), back.Layers())
	require.ElementsMatch(t, a.Config().Targets, back.Config().Targets)
	s, err := patternSelection(config["target_modules"].(string))
	require.NoError(t, err)
	for name, want := range map[string]bool{
		"model.visual.blocks.0.attn.q_proj": false, "lm_head": true, layers[0].Name: true, layers[1].Name: false,
	} {
		got, err := s.selects(LayerShape{Name: name})
		require.NoError(t, err)
		require.Equal(t, want, got, name)
	}
}
