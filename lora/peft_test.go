package lora

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/safetensors"
)

func TestSaveLoad_RoundTrip(t *testing.T) {
	for _, cfg := range []Config{{}, {Rank: 3, Alpha: 0.5, Targets: []string{"o_proj", "k_proj"}}} {
		a := newAdapter(t, cfg)
		dir := filepath.Join(t.TempDir(), "new", "dir")
		require.NoError(t, a.Save(dir, "org/base"))
		got, err := Load(dir)
		require.NoError(t, err)
		require.Equal(t, a, got)

		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, entries, 2, "temporary files are left")
		first := readAll(t, dir)
		require.NoError(t, got.Save(dir, "org/base"))
		require.Equal(t, first, readAll(t, dir), "the bytes are not a function of the adapter")
	}
}

func readAll(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range []string{weightsFile, configFile} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		out[name] = string(content)
	}
	return out
}

// TestSave_Format compares the files with those that PEFT itself wrote.
func TestSave_Format(t *testing.T) {
	a, err := Load("testdata/peft")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, a.Save(dir, "test/tiny-llama"))

	var theirs, ours map[string]any
	require.NoError(t, json.Unmarshal([]byte(readAll(t, "testdata/peft")[configFile]), &theirs))
	require.NoError(t, json.Unmarshal([]byte(readAll(t, dir)[configFile]), &ours))
	for key, value := range ours {
		require.Contains(t, theirs, key)
		switch key {
		case "target_modules":
			require.ElementsMatch(t, theirs[key], value)
		case "lora_dropout":
			require.Equal(t, 0.0, value)
		default:
			require.Equal(t, theirs[key], value, key)
		}
	}

	want, err := safetensors.Open(filepath.Join("testdata/peft", weightsFile))
	require.NoError(t, err)
	defer want.Close()
	got, err := safetensors.Open(filepath.Join(dir, weightsFile))
	require.NoError(t, err)
	defer got.Close()
	require.ElementsMatch(t, want.Names(), got.Names())
	require.Equal(t, want.Metadata(), got.Metadata())
	for _, name := range want.Names() {
		x, _ := want.Tensor(name)
		y, _ := got.Tensor(name)
		require.Equal(t, x, y)
	}
}

func TestSave_RefusesNonFinite(t *testing.T) {
	a := newAdapter(t, Config{})
	a.layers[3].B[5] = float32(math.NaN())
	dir := t.TempDir()
	require.ErrorContains(t, a.Save(dir, ""), `"`+a.layers[3].Name+`" has a number that is not finite`)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestSave_Fails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, newAdapter(t, Config{}).Save(filepath.Join(file, "dir"), ""), "lora: save adapter: ")
}

// writeAdapter writes a small good adapter whose configuration is then overwritten by fields (nil removes one).
func writeAdapter(t *testing.T, fields map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, newAdapter(t, Config{Rank: 2, Targets: []string{"q_proj", "down_proj"}}).Save(dir, "org/base"))
	var config map[string]any
	require.NoError(t, json.Unmarshal([]byte(readAll(t, dir)[configFile]), &config))
	maps.Copy(config, fields)
	maps.DeleteFunc(config, func(_ string, v any) bool { return v == nil })
	content, err := json.Marshal(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, configFile), content, 0o600))
	return dir
}

func TestLoad_Unsupported(t *testing.T) {
	for key, value := range map[string]any{
		"peft_type":               "IA3",
		"bias":                    "lora_only",
		"fan_in_fan_out":          true,
		"lora_bias":               true,
		"modules_to_save":         []string{"lm_head"},
		"layer_replication":       [][]int{{0, 1}},
		"target_parameters":       []string{"mlp.experts.gate_up_proj"},
		"trainable_token_indices": []int{1},
		"init_lora_weights":       "pissa_niter_16",
	} {
		_, err := Load(writeAdapter(t, map[string]any{key: value}))
		require.ErrorContains(t, err, key)
		require.ErrorContains(t, err, "support")
	}
	dir := writeAdapter(t, nil)
	content, err := os.ReadFile(filepath.Join(dir, configFile))
	require.NoError(t, err)
	content = bytes.Replace(content, []byte(`"use_dora":false`), []byte("\"modules_to_save\": [\n    \"a\"\n  ]"), 1)
	require.NoError(t, os.WriteFile(filepath.Join(dir, configFile), content, 0o600))
	_, err = Load(dir)
	require.ErrorContains(t, err, `modules_to_save is ["a"]: not supported`, "in one line")
	_, err = Load(writeAdapter(t, map[string]any{"use_qalora": true, "bias": "all", "modules_to_save": []string{"a"}}))
	for _, want := range []string{"use_qalora", "bias", "modules_to_save"} {
		require.ErrorContains(t, err, want, "not everything is listed")
	}
}

func TestLoad_Tolerates(t *testing.T) {
	for name, fields := range map[string]map[string]any{
		"dropout":          {"lora_dropout": 0.1},
		"unknown":          {"some_new_field": map[string]any{"x": 1}, "peft_version": "0.21.2"},
		"missing optional": {"bias": nil, "use_dora": nil, "modules_to_save": nil, "task_type": nil},
		"off in full":      {"use_dora": false, "rank_pattern": map[string]int{}, "modules_to_save": []string{}, "init_lora_weights": "gaussian"},
		"longer modules":   {"target_modules": []string{"self_attn.q_proj", "mlp.down_proj"}},
		"pattern":          {"target_modules": ".*(q|down)_proj"},
	} {
		a, err := Load(writeAdapter(t, fields))
		require.NoError(t, err, name)
		require.ElementsMatch(t, []string{"q_proj", "down_proj"}, a.Config().Targets, name)
		require.Len(t, a.Layers(), 6, name)
	}
	a, err := Load(writeAdapter(t, map[string]any{"lora_alpha": nil}))
	require.NoError(t, err)
	require.Equal(t, 8.0, a.Config().Alpha, "PEFT's default")
}

func TestLoad_BadConfig(t *testing.T) {
	for want, fields := range map[string]map[string]any{
		"r is 0":                   {"r": nil},
		"r is -2":                  {"r": -2},
		"lora_alpha 0":             {"lora_alpha": 0},
		"lora_alpha:":              {"lora_alpha": "sixteen"},
		"r = 4":                    {"r": 4},
		"is not in target_modules": {"target_modules": []string{"q_proj"}},
		`"lm_head" has no tensors`: {"target_modules": []string{"q_proj", "down_proj", "lm_head"}},
		"peft_type is ":            {"peft_type": nil},
	} {
		_, err := Load(writeAdapter(t, fields))
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "lora: load adapter from ")
	}
	dir := writeAdapter(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(dir, configFile), []byte(`{"r": 2`), 0o600))
	_, err := Load(dir)
	require.ErrorContains(t, err, configFile)
	_, err = Load(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
	dir = writeAdapter(t, nil)
	require.NoError(t, os.Remove(filepath.Join(dir, weightsFile)))
	_, err = Load(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLoad_BadTensors(t *testing.T) {
	const q = "base_model.model.model.layers.0.self_attn.q_proj"
	matrix := func(name string, rows, cols int) safetensors.Tensor {
		return safetensors.NewFloat32(name, []int{rows, cols}, make([]float32, rows*cols))
	}
	a, b := matrix(q+".lora_A.weight", 2, 6), matrix(q+".lora_B.weight", 8, 2)
	bad := matrix(q+".lora_A.weight", 2, 6)
	copy(bad.Data[4:], []byte{0, 0, 0x80, 0x7f}) // +Inf
	for name, c := range map[string]struct {
		tensors []safetensors.Tensor
		want    string
	}{
		"none":         {nil, "no tensors"},
		"half":         {[]safetensors.Tensor{a}, q + `.lora_B.weight" is missing`},
		"dora":         {[]safetensors.Tensor{a, b, matrix(q+".lora_magnitude_vector", 8, 1)}, "lora_magnitude_vector"},
		"embedding":    {[]safetensors.Tensor{a, b, matrix("base_model.model.embed_tokens.lora_embedding_A", 2, 9)}, "lora_embedding_B\" is missing"},
		"saved module": {[]safetensors.Tensor{a, b, matrix("base_model.model.lm_head.weight", 2, 2)}, `"base_model.model.lm_head.weight" is not`},
		"no prefix":    {[]safetensors.Tensor{matrix("q_proj.lora_A.weight", 2, 2)}, `"q_proj.lora_A.weight" is not`},
		"no layer":     {[]safetensors.Tensor{matrix("base_model.model..lora_A.weight", 2, 2)}, "is not one of a plain LoRA"},
		"transposed":   {[]safetensors.Tensor{matrix(q+".lora_A.weight", 6, 2), b}, "A [6 2] and B [8 2]"},
		"other rank":   {[]safetensors.Tensor{a, matrix(q+".lora_B.weight", 8, 3)}, "A [2 6] and B [8 3]"},
		"vector":       {[]safetensors.Tensor{a, safetensors.NewFloat32(q+".lora_B.weight", []int{16}, make([]float32, 16))}, "has shape [16], want a matrix"},
		"empty":        {[]safetensors.Tensor{matrix(q+".lora_A.weight", 2, 0), b}, "has shape [2 0]"},
		"integers":     {[]safetensors.Tensor{{Name: a.Name, DType: "I32", Shape: a.Shape, Data: a.Data}, b}, "I32"},
		"not finite":   {[]safetensors.Tensor{bad, b}, "not finite"},
		"not a target": {[]safetensors.Tensor{a, b, matrix("base_model.model.x.lora_A.weight", 2, 1), matrix("base_model.model.x.lora_B.weight", 1, 2)}, `"x" is not in target_modules`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeAdapter(t, map[string]any{"target_modules": []string{"q_proj"}})
			var file bytes.Buffer
			require.NoError(t, safetensors.Write(&file, c.tensors, nil))
			require.NoError(t, os.WriteFile(filepath.Join(dir, weightsFile), file.Bytes(), 0o600))
			_, err := Load(dir)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestLoad_Truncated cuts the weights at every length: never a panic, never a success.
func TestLoad_Truncated(t *testing.T) {
	dir := writeAdapter(t, nil)
	content := readAll(t, dir)[weightsFile]
	step := max(1, len(content)/500)
	for n := 0; n < len(content); n += step {
		require.NoError(t, os.WriteFile(filepath.Join(dir, weightsFile), []byte(content[:n]), 0o600))
		_, err := Load(dir)
		require.Error(t, err, "cut at %d of %d", n, len(content))
	}
}

// TestLoad_HalfPrecision reads an adapter in bfloat16, as some trainers write it.
func TestLoad_HalfPrecision(t *testing.T) {
	dir := writeAdapter(t, nil)
	want, err := Load(dir)
	require.NoError(t, err)
	file, err := safetensors.Open(filepath.Join(dir, weightsFile))
	require.NoError(t, err)
	var narrow []safetensors.Tensor
	for _, name := range file.Names() {
		x, _ := file.Tensor(name)
		h := safetensors.Tensor{Name: x.Name, DType: "BF16", Shape: x.Shape}
		for i := 0; i < len(x.Data); i += 4 {
			h.Data = append(h.Data, x.Data[i+2:i+4]...) // truncates
		}
		narrow = append(narrow, h)
	}
	require.NoError(t, file.Close())
	var buf bytes.Buffer
	require.NoError(t, safetensors.Write(&buf, narrow, nil))
	require.NoError(t, os.WriteFile(filepath.Join(dir, weightsFile), buf.Bytes(), 0o600))
	got, err := Load(dir)
	require.NoError(t, err)
	for i, l := range want.Layers() {
		for j, v := range l.A {
			require.Equal(t, math.Float32frombits(math.Float32bits(v)&^0xffff), got.layers[i].A[j])
		}
	}
	require.True(t, strings.HasPrefix(got.layers[0].Name, "model.layers.0."))
}

// TestSave_Ends: adapters of embedding and head are written as PEFT writes them, but for the base model's own weights,
// which PEFT adds.
func TestSave_Ends(t *testing.T) {
	const theirs = "testdata/ends/adapter"
	a, err := Load(theirs)
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, a.Save(dir, "test/ends"))
	want, err := safetensors.Open(filepath.Join(theirs, weightsFile))
	require.NoError(t, err)
	defer want.Close()
	got, err := safetensors.Open(filepath.Join(dir, weightsFile))
	require.NoError(t, err)
	defer got.Close()
	extra := 0
	for _, name := range want.Names() {
		x, _ := want.Tensor(name)
		y, ok := got.Tensor(name)
		if strings.HasSuffix(name, baseSuffix) {
			require.False(t, ok, name)
			extra++
			continue
		}
		require.True(t, ok, name)
		require.Equal(t, x.Shape, y.Shape, name)
		from, err := x.Float32s()
		require.NoError(t, err)
		to, err := y.Float32s()
		require.NoError(t, err)
		require.Equal(t, from, to, name)
	}
	require.Equal(t, 2, extra)
	require.Len(t, got.Names(), len(want.Names())-extra)
	var config, ours map[string]any
	require.NoError(t, json.Unmarshal([]byte(readAll(t, theirs)[configFile]), &config))
	require.NoError(t, json.Unmarshal([]byte(readAll(t, dir)[configFile]), &ours))
	require.Equal(t, config["target_modules"], ours["target_modules"])
}
