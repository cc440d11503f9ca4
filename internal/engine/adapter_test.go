package engine

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/safetensors"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/lora"
)

// inLayer returns the matrices of testAdapter as an adapter of one block alone, as PEFT's layers_to_transform does.
func inLayer(t *testing.T, block string) *lora.Adapter {
	all, dir := testAdapter(t, 4), t.TempDir()
	var list []safetensors.Tensor
	for _, l := range all.Layers() {
		if strings.HasPrefix(l.Name, "model.layers.0.") {
			name := "base_model.model." + strings.Replace(l.Name, "layers.0.", "layers."+block+".", 1)
			list = append(list,
				safetensors.NewFloat32(name+".lora_A.weight", []int{4, l.In}, l.A),
				safetensors.NewFloat32(name+".lora_B.weight", []int{l.Out, 4}, l.B))
		}
	}
	var file bytes.Buffer
	require.NoError(t, safetensors.Write(&file, list, nil))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "adapter_model.safetensors"), file.Bytes(), 0o600))
	config := `{"peft_type": "LORA", "r": 4, "lora_alpha": 16, "target_modules": ".*_proj"}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte(config), 0o600))
	a, err := lora.Load(dir)
	require.NoError(t, err)
	return a
}

// TestAdapter_OtherLayers: two adapters of equal rank and targets but different layers do not share graphs, which would
// apply the matrices of the second in the layers of the first.
func TestAdapter_OtherLayers(t *testing.T) {
	first, second := onDevice(t, inLayer(t, "0")), onDevice(t, inLayer(t, "1"))
	ask := func(e *Engine, a *Adapter) *Result {
		r, err := e.Complete(context.Background(), Request{
			Prompt: []int32{7, 8, 9}, MaxTokens: 8, Adapter: a, Sampling: sampling.Settings{Temperature: 1, TopP: 1},
		})
		require.NoError(t, err)
		return r
	}
	shared := testEngine(t, 2)
	ask(shared, first)
	sameReply(t, ask(testEngine(t, 2), second), ask(shared, second), "the second adapter")
}
