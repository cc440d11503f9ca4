package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/safetensors"
)

// writeFolder writes a model folder whose weights are the given tensors.
func writeFolder(t *testing.T, c *Config, list []safetensors.Tensor) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, c.Save(dir))
	writeTensors(t, filepath.Join(dir, WeightsFile), list)
	return dir
}

func writeTensors(t *testing.T, path string, list []safetensors.Tensor) {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, safetensors.Write(&file, list, nil))
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
}

// stored are the tensors of a checkpoint in float32.
func stored(w *Weights) []safetensors.Tensor {
	var list []safetensors.Tensor
	for _, x := range w.Tensors {
		list = append(list, safetensors.NewFloat32(x.Name, x.Shape, x.Data))
	}
	return list
}

// smallConfig makes checkpoints of a few kilobytes.
func smallConfig(tied bool) *Config {
	c := testConfig()
	c.VocabSize, c.HiddenSize, c.IntermediateSize, c.NumLayers, c.HeadDim, c.TieEmbeddings = 5, 4, 6, 2, 2, tied
	return c
}

func sameWeights(t *testing.T, want, got *Weights) {
	t.Helper()
	require.Equal(t, want.Config, got.Config)
	require.Len(t, got.Tensors, len(want.Tensors))
	for i, x := range want.Tensors {
		require.Equal(t, x.Name, got.Tensors[i].Name)
		require.Equal(t, x.Shape, got.Tensors[i].Shape)
		sameBits(t, x.Data, got.Tensors[i].Data, "%s", x.Name)
	}
}

// TestWeights_SaveLoad keeps every bit, of numbers that no training makes too.
func TestWeights_SaveLoad(t *testing.T) {
	for _, tied := range []bool{true, false} {
		w := testWeights(t, smallConfig(tied))
		copy(w.Tensors[1].Data,
			[]float32{float32(math.Copysign(0, -1)), float32(math.Inf(-1)), math.Float32frombits(0x7fc12345), 1e-45})
		dir := t.TempDir()
		require.NoError(t, w.Save(dir))
		got, err := Load(dir)
		require.NoError(t, err)
		sameWeights(t, w, got)

		config, err := os.ReadFile(filepath.Join(dir, ConfigFile))
		require.NoError(t, err)
		data, err := os.ReadFile(filepath.Join(dir, WeightsFile))
		require.NoError(t, err)
		c, err := Parse(config, data)
		require.NoError(t, err)
		got = c.Weights()
		sameWeights(t, w, got)
		clear(data) // Weights are copies
		sameWeights(t, w, got)
	}
}

// TestLoad_HalfPrecision reads a checkpoint in bfloat16 and in float16. Both hold the numbers used here exactly.
func TestLoad_HalfPrecision(t *testing.T) {
	bfloat16 := func(v float32) uint16 { return uint16(math.Float32bits(v) >> 16) }
	float16 := func(v float32) uint16 { // of normal numbers
		b := math.Float32bits(v)
		return uint16(b>>31<<15 | (b>>23&0xff-127+15)<<10 | b>>13&0x3ff)
	}
	for dtype, convert := range map[safetensors.DType]func(float32) uint16{safetensors.BF16: bfloat16,
		safetensors.F16: float16} {
		w := testWeights(t, smallConfig(false))
		var list []safetensors.Tensor
		for i := range w.Tensors {
			x := &w.Tensors[i]
			narrow := safetensors.Tensor{Name: x.Name, DType: dtype, Shape: x.Shape}
			for j := range x.Data {
				x.Data[j] = float32(j%15-7) / 8 // three bits of mantissa
				if x.Data[j] == 0 {
					x.Data[j] = 1024
				}
				narrow.Data = binary.LittleEndian.AppendUint16(narrow.Data, convert(x.Data[j]))
			}
			list = append(list, narrow)
		}
		got, err := Load(writeFolder(t, w.Config, list))
		require.NoError(t, err)
		sameWeights(t, w, got)
	}
}

// TestLoad_Sharded spreads the tensors over shards, out of order.
func TestLoad_Sharded(t *testing.T) {
	w := testWeights(t, smallConfig(false))
	dir := t.TempDir()
	require.NoError(t, w.Config.Save(dir))
	shards, places := map[string][]safetensors.Tensor{}, map[string]string{}
	for i, x := range slices.Backward(stored(w)) {
		shard := []string{"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
			"model-00003-of-00003.safetensors"}[i%3]
		shards[shard] = append(shards[shard], x)
		places[x.Name] = shard
	}
	for name, list := range shards {
		writeTensors(t, filepath.Join(dir, name), list)
	}
	index, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": places})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, WeightsFile+".index.json"), index, 0o600))
	got, err := Load(dir)
	require.NoError(t, err)
	sameWeights(t, w, got)

	require.NoError(t, os.Remove(filepath.Join(dir, "model-00002-of-00003.safetensors")))
	_, err = Load(dir)
	require.ErrorContains(t, err, "model-00002-of-00003.safetensors")
}

// TestLoad_NamesWhatIsWrong: each tensor that does not fit is named, all of them in one error.
func TestLoad_NamesWhatIsWrong(t *testing.T) {
	const q, down = "model.layers.1.self_attn.q_proj.weight", "model.layers.0.mlp.down_proj.weight"
	find := func(list []safetensors.Tensor, name string) int {
		return slices.IndexFunc(list, func(x safetensors.Tensor) bool { return x.Name == name })
	}
	vector := func(name string) safetensors.Tensor { return safetensors.NewFloat32(name, []int{1}, []float32{1}) }
	for _, c := range []struct {
		name    string
		corrupt func(list []safetensors.Tensor) []safetensors.Tensor
		want    []string
	}{
		{"missing", func(list []safetensors.Tensor) []safetensors.Tensor {
			i, j := find(list, down), find(list, q)
			return slices.Delete(slices.Delete(list, j, j+1), i, i+1)
		}, []string{"the checkpoint has no " + q, "the checkpoint has no " + down}},
		{"extra", func(list []safetensors.Tensor) []safetensors.Tensor {
			return append(list, vector("model.layers.2.self_attn.q_proj.weight"), vector("model.layers.0.self_attn.q_proj.bias"))
		}, []string{"the checkpoint has model.layers.2.self_attn.q_proj.weight",
			"the checkpoint has model.layers.0.self_attn.q_proj.bias"}},
		{"transposed", func(list []safetensors.Tensor) []safetensors.Tensor {
			slices.Reverse(list[find(list, q)].Shape)
			return list
		}, []string{q + " is [4 8], the configuration requires [8 4]"}},
		{"another rank", func(list []safetensors.Tensor) []safetensors.Tensor {
			list[find(list, q)].Shape = []int{32}
			return list
		}, []string{q + " is [32]"}},
		{"integers", func(list []safetensors.Tensor) []safetensors.Tensor {
			list[find(list, q)].DType = safetensors.I32
			return list
		}, []string{q, "I32"}},
		{"missing and extra", func(list []safetensors.Tensor) []safetensors.Tensor {
			list[find(list, q)].Name = "q"
			return list
		}, []string{"the checkpoint has no " + q, "the checkpoint has q"}},
		{"no embedding", func(list []safetensors.Tensor) []safetensors.Tensor { return list[1:] }, []string{"the checkpoint has no model.embed_tokens.weight"}},
		{"no head", func(list []safetensors.Tensor) []safetensors.Tensor { return list[:len(list)-1] }, []string{"the checkpoint has no lm_head.weight"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := testWeights(t, smallConfig(false))
			got, err := Load(writeFolder(t, w.Config, c.corrupt(stored(w))))
			require.Nil(t, got)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// TestLoad_NamesNotAll: where the configuration is another model's, the error can be read.
func TestLoad_NamesNotAll(t *testing.T) {
	w := testWeights(t, smallConfig(false))
	list := stored(w)
	w.Config.NumLayers += 50
	_, err := Load(writeFolder(t, w.Config, list))
	require.ErrorContains(t, err, "the checkpoint has no model.layers.2.")
	missing := len(w.Config.Specs()) - len(list)
	require.ErrorContains(t, err, fmt.Sprintf("and %d more problems", missing-20))
	require.Len(t, strings.Split(err.Error(), "\n"), 20+1)
}

// TestLoad_TiedHead: a tied model may hold its embedding a second time, as Qwen/Qwen3-0.6B does, and nothing else.
func TestLoad_TiedHead(t *testing.T) {
	w := testWeights(t, smallConfig(true))
	embed := w.Tensors[0]
	got, err := Load(writeFolder(t, w.Config,
		append(stored(w), safetensors.NewFloat32("lm_head.weight", embed.Shape, embed.Data))))
	require.NoError(t, err)
	sameWeights(t, w, got)

	other := slices.Clone(embed.Data)
	other[3]++
	for _, head := range []safetensors.Tensor{
		safetensors.NewFloat32("lm_head.weight", embed.Shape, other),
		safetensors.NewFloat32("lm_head.weight", []int{4, 5}, embed.Data),
	} {
		_, err = Load(writeFolder(t, w.Config, append(stored(w), head)))
		require.ErrorContains(t, err, "lm_head.weight that differs from model.embed_tokens.weight")
	}
}

func TestLoad_NoFiles(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(dir)
	require.ErrorContains(t, err, ConfigFile)
	require.NoError(t, smallConfig(true).Save(dir))
	_, err = Load(dir)
	require.ErrorContains(t, err, WeightsFile)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Parse([]byte(`{}`), nil)
	require.ErrorContains(t, err, "model_type")
	config, err := os.ReadFile(filepath.Join(dir, ConfigFile))
	require.NoError(t, err)
	_, err = Parse(config, []byte("no tensors"))
	require.ErrorIs(t, err, safetensors.ErrFormat)
}

// TestSave_Refuses weights that do not fit their configuration, before it writes anything.
func TestSave_Refuses(t *testing.T) {
	for name, corrupt := range map[string]func(w *Weights){
		"a tensor less": func(w *Weights) { w.Tensors = w.Tensors[1:] },
		"another order": func(w *Weights) { slices.Reverse(w.Tensors) },
		"another shape": func(w *Weights) { slices.Reverse(w.Tensors[0].Shape) },
		"too few":       func(w *Weights) { w.Tensors[2].Data = w.Tensors[2].Data[1:] },
	} {
		t.Run(name, func(t *testing.T) {
			dir, w := t.TempDir(), testWeights(t, smallConfig(true))
			corrupt(w)
			require.ErrorContains(t, w.Save(dir), "the configuration requires")
			_, err := w.Params(graphtest.Device(t))
			require.ErrorContains(t, err, "the configuration requires")
			files, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, files)
		})
	}
}
