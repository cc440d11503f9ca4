package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/gguf"
)

// saved returns weights as a checkpoint in a folder.
func saved(t *testing.T, w *Weights) *Checkpoint {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, w.Save(dir))
	c, err := Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// quantized returns a checkpoint as a GGUF file.
func quantized(t *testing.T, c *Checkpoint, o *GGUFOptions) *Checkpoint {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, c.WriteGGUF(&b, o))
	path := filepath.Join(t.TempDir(), "model.gguf")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	file, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	return file
}

// TestWriteGGUF_Architectures: each model that llama.cpp can express is the same when it is read back, but for the
// rounding of its matrices.
func TestWriteGGUF_Architectures(t *testing.T) {
	seen := map[string]bool{}
	eachFixture(t, func(t *testing.T, m *fixtures.Model, w *Weights) {
		c := w.Config
		if c.RopeScaling != nil && c.RopeScaling.Type == ropeLlama3 {
			c.RopeScaling.OriginalPositions = 8192 // of the released models, which are known
		}
		if c.ModelType == "gemma3_text" && m.Name != "gemma3-caps" { // what llama.cpp takes for granted
			c.QueryScalar, c.LayerTypes = float64(c.HeadDim), []string{layerSliding, layerSliding, layerSliding}
		}
		if c.ModelType == "qwen3_moe" {
			require.ErrorContains(t, saved(t, w).WriteGGUF(io.Discard, &GGUFOptions{Type: "Q8_0"}), "layers without experts")
			c.MLPOnlyLayers, c.DecoderSparseStep, c.NormTopKProb = nil, 1, true
			w = testWeights(t, c)
		}
		folder := saved(t, w)
		windows := false
		for _, l := range c.design().layers {
			windows = windows || l.window > 0
		}
		if m.Name == "gemma3-caps" || windows && c.ModelType != "gemma3_text" || !inGGUF(c) {
			require.ErrorContains(t, folder.WriteGGUF(io.Discard, &GGUFOptions{Type: "Q8_0"}), "llama.cpp does not build")
			return
		}
		seen[c.ModelType] = true
		file := quantized(t, folder, &GGUFOptions{Type: "Q8_0", Name: m.Name})
		got := file.Weights()
		if c.wrapper != nil { // the file has the text model alone
			c.wrapper, c.Architectures = nil, nil
			for i, x := range w.Tensors {
				w.Tensors[i].Name = strings.Replace(x.Name, towerRoot, "model.", 1)
			}
		}
		for i, x := range w.Tensors {
			require.Equal(t, x.Name, got.Tensors[i].Name)
			delta := 1e-6
			if len(x.Shape) > 1 {
				delta = float64(max(slices.Max(x.Data), -slices.Min(x.Data))) / 225 // half a 127th, and the rounding of the scale
			}
			for j, v := range x.Data {
				require.InDelta(t, v, got.Tensors[i].Data[j], delta, "%s %d", x.Name, j)
			}
		}
		w.Tensors = got.Tensors // what remains to be compared is the configuration
		want := newForward(t, w, nil, nil).logprobs(t, m.Flat(), len(m.IDs))
		for i, p := range newForward(t, got, nil, nil).logprobs(t, m.Flat(), len(m.IDs)) {
			require.InDelta(t, want[i], p, 1e-5)
		}
		name, _ := file.set.(*ggufSet).file.Value("general.name")
		require.Equal(t, m.Name, name)
	})
	require.GreaterOrEqual(t, len(seen), len(ggufModels), "%v", seen)
}

// TestWriteGGUF_Again: what is in a file is written again as it is, quantized once more; what has its type already is
// copied.
func TestWriteGGUF_Again(t *testing.T) {
	config := smallConfig(false)
	config.HiddenSize, config.HeadDim = 64, 32
	w := testWeights(t, config)
	meta := map[string]any{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": []string{"a", "b"}}
	var calls []string
	o := &GGUFOptions{Type: "Q8_0", Tokenizer: meta, Tensor: func(name, from, to string) {
		calls = append(calls, fmt.Sprint(name, " ", from, " ", to))
	}}
	once := quantized(t, saved(t, w), o)
	require.Contains(t, calls, "token_embd.weight F32 Q8_0")
	twice := quantized(t, once, &GGUFOptions{Type: "Q8_0"})
	require.Equal(t, once.Weights(), twice.Weights())
	calls = nil
	o.Type = "Q4_0"
	smaller := quantized(t, once, o)
	require.Contains(t, calls, "token_embd.weight Q8_0 Q4_0")
	require.Contains(t, calls, "output_norm.weight F32 F32")
	first, second := once.set.(*ggufSet).file, smaller.set.(*ggufSet).file
	for _, key := range first.Keys() {
		a, _ := first.Value(key)
		b, _ := second.Value(key)
		if key == "general.file_type" {
			require.Equal(t, []any{uint32(7), uint32(2)}, []any{a, b})
			continue
		}
		require.Equal(t, a, b, key)
	}
	require.Equal(t, first.Names(), second.Names())
	from, _ := first.Tensor("blk.0.attn_q.weight")
	to, _ := second.Tensor("blk.0.attn_q.weight")
	values, err := from.Float32s()
	require.NoError(t, err)
	want := make([]byte, len(to.Data))
	require.NoError(t, ggml.Q4_0.Quantize(want, values))
	require.Equal(t, want, to.Data)
}

// TestWriteGGUF_Errors: what cannot be written is named, and errors of the file are returned.
func TestWriteGGUF_Errors(t *testing.T) {
	w := testWeights(t, smallConfig(true))
	c := saved(t, w)
	require.NoError(t, c.WriteGGUF(io.Discard, nil))
	require.ErrorContains(t, c.WriteGGUF(io.Discard, &GGUFOptions{Type: "Q3_K"}), strings.Join(GGUFTypes(), ", "))
	full := errors.New("no space")
	for after := range 8 {
		require.ErrorIs(t, c.WriteGGUF(&fullWriter{after, full}, &GGUFOptions{Type: "Q8_0"}), full)
	}
	require.Error(t, c.WriteGGUF(io.Discard, &GGUFOptions{Type: "Q8_0", Tokenizer: map[string]any{"tokenizer.x": 1}}))
	w.Tensors[3].Data[5] = float32(math.NaN())
	name, _ := strings.CutPrefix(w.Tensors[3].Name, "model.layers.0.")
	err := saved(t, w).WriteGGUF(io.Discard, &GGUFOptions{Type: "Q8_0"})
	require.ErrorContains(t, err, "blk.0.")
	require.ErrorContains(t, err, "element 5 is NaN", name)
}

// fullWriter fails after some writes.
type fullWriter struct {
	left int
	err  error
}

func (w *fullWriter) Write(b []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, w.err
	}
	return len(b), nil
}

// TestWriteGGUF_Factors: those of another scaling of RoPE than the released models' could not be read back.
func TestWriteGGUF_Factors(t *testing.T) {
	c := &Config{HeadDim: 64, RopeTheta: 500000, RopeScaling: &RopeScaling{Type: ropeLlama3, Factor: 32, LowFactor: 1,
		HighFactor: 4, OriginalPositions: 8192}}
	parts, err := c.ropeFactors()
	require.NoError(t, err)
	require.Equal(t, gguf.Tensor{}.Type, parts[0].Type)
	got := make([]float32, 32)
	parts[0].read(got, 0)
	require.Equal(t, []float32{1, 32}, []float32{got[0], got[31]})
	c.RopeScaling.HighFactor = 8
	_, err = c.ropeFactors()
	require.ErrorContains(t, err, "not those of Llama 3")
}
