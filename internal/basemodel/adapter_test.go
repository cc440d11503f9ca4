package basemodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/gguftest"
	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// llama opens the model that testdata/adapter is for.
func llama(t *testing.T) *Base {
	t.Helper()
	c, err := model.Open("../dev/testdata/architectures/llama")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return &Base{Checkpoint: c}
}

// TestWriteGGUFAdapter_Golden: an adapter with patterns, rsLoRA, embedding and head has the bytes that gguf's writer
// gives it; testdata/adapter.py has the command.
func TestWriteGGUFAdapter_Golden(t *testing.T) {
	a, err := lora.Load("testdata/adapter")
	require.NoError(t, err)
	for name, kind := range map[string]ggml.Type{"float32": ggml.F32, "float16": ggml.F16} {
		var b bytes.Buffer
		require.NoError(t, llama(t).WriteGGUFAdapter(&b, a, kind))
		want, err := os.ReadFile("testdata/adapter-" + name + ".gguf")
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, b.Bytes()), name)
	}
}

// TestWriteGGUFAdapter_Errors: what llama.cpp does not compute is refused, with the reason.
func TestWriteGGUFAdapter_Errors(t *testing.T) {
	base := llama(t)
	refused := func(want string, b *Base, a *lora.Adapter, kind ggml.Type) {
		t.Helper()
		require.ErrorContains(t, b.WriteGGUFAdapter(&bytes.Buffer{}, a, kind), want)
	}
	adapter := func(b *Base, cfg lora.Config) *lora.Adapter {
		var layers []lora.LayerShape
		for _, l := range b.Config.Adaptable() {
			layers = append(layers, lora.LayerShape(l))
		}
		a, err := lora.New(cfg, layers, 1)
		require.NoError(t, err)
		return a
	}
	a := adapter(base, lora.Config{Rank: 2})
	refused("want F32 or F16", base, a, ggml.BF16)
	refused("DoRA, which llama.cpp does not compute", base, adapter(base, lora.Config{Rank: 2, DoRA: true}), ggml.F32)
	refused("no layers", base, a.Of(func(string) bool { return false }), ggml.F32)
	a.Layers()[0].A[0] = 70000
	refused("70000, which is too large for F16: take F32", base, a, ggml.F16)
	require.NoError(t, base.WriteGGUFAdapter(&bytes.Buffer{}, a, ggml.F32))
	require.ErrorIs(t, base.WriteGGUFAdapter(failing{}, a, ggml.F32), errFull)

	tied, err := Open("tiny")
	require.NoError(t, err)
	defer func() { require.NoError(t, tied.Close()) }()
	refused("32 to 32 in the adapter and 256 to 128 in the model", tied, a, ggml.F32)
	for _, end := range []string{"lm_head", "embed_tokens"} {
		refused(end+", which cannot be written for llama.cpp: embedding and head of the base are one matrix", tied,
			adapter(tied, lora.Config{Targets: []string{"q_proj", end}}), ggml.F32)
	}
}

var errFull = errors.New("no space left")

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

// TestExportPEFT_Names: an adapter of a GGUF file names the checkpoint that the file was made from, where the file says
// it; that of another model what the caller says.
func TestExportPEFT_Names(t *testing.T) {
	from, err := Open(gguftest.Folder(t, tinyDir))
	require.NoError(t, err)
	defer func() { require.NoError(t, from.Close()) }()
	require.Equal(t, "Tiny", from.Original)
	var layers []lora.LayerShape
	for _, l := range from.Config.Linears() {
		layers = append(layers, lora.LayerShape(l))
	}
	a, err := lora.New(lora.Config{Rank: 2}, layers, 1)
	require.NoError(t, err)
	for _, original := range []string{"", "org/name"} {
		from.Original = original
		dir := filepath.Join(t.TempDir(), "new")
		require.NoError(t, from.ExportPEFT(dir, "given.gguf", a))
		content, err := os.ReadFile(filepath.Join(dir, "adapter_config.json"))
		require.NoError(t, err)
		var c struct {
			Base string `json:"base_model_name_or_path"`
		}
		require.NoError(t, json.Unmarshal(content, &c))
		require.Equal(t, map[string]string{"": "given.gguf", "org/name": "org/name"}[original], c.Base)
		again, err := lora.Load(dir)
		require.NoError(t, err)
		require.Equal(t, a.Layers(), again.Layers())
		require.ErrorContains(t, from.ExportPEFT(dir, "x", a), "is not empty")
	}
	a.Layers()[0].A[0] = float32(math.NaN())
	require.ErrorContains(t, from.ExportPEFT(filepath.Join(t.TempDir(), "new"), "x", a), "not finite")
	require.ErrorContains(t, llama(t).ExportPEFT(t.TempDir(), "x", a), "256 to 128 in the adapter")
}
