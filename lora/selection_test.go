package lora

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// selections are fields of adapter_config.json, and the modules of testLayers that PEFT 0.17 chooses by them, without
// "model.layers.".
var selections = map[string]struct {
	fields map[string]any
	want   []string
}{
	"list":       {map[string]any{keyTargets: []string{"q_proj"}}, []string{"0.self_attn.q_proj", "1.self_attn.q_proj", "10.self_attn.q_proj"}},
	"longer end": {map[string]any{keyTargets: []string{"0.self_attn.q_proj"}}, []string{"0.self_attn.q_proj"}},
	"full names": {
		map[string]any{keyTargets: []string{"model.layers.1.mlp.up_proj", "model.layers.10.self_attn.q_proj"}},
		[]string{"1.mlp.up_proj", "10.self_attn.q_proj"},
	},
	"regex":      {map[string]any{keyTargets: `.*layers\.[02]\..*\.(q|v)_proj`}, []string{"0.self_attn.q_proj", "0.self_attn.v_proj"}},
	"whole name": {map[string]any{keyTargets: `.*layers\.1.*up_proj`}, []string{"1.mlp.up_proj", "10.mlp.up_proj"}},
	"lookahead":  {map[string]any{keyTargets: `^(?!.*layers\.(?P<n>0|1)\.).*k_proj`}, []string{"10.self_attn.k_proj"}},
	"all but": {
		map[string]any{keyTargets: "all-linear", keyExclude: `.*(layers\.[01]\.|mlp|head).*`},
		[]string{"10.self_attn.q_proj", "10.self_attn.k_proj", "10.self_attn.v_proj", "10.self_attn.o_proj"},
	},
	"layers": {
		map[string]any{keyTargets: []string{"k_proj", "up_proj"}, keyLayers: []int{1, 10}},
		[]string{"1.self_attn.k_proj", "1.mlp.up_proj", "10.self_attn.k_proj", "10.mlp.up_proj"},
	},
	"one layer":      {map[string]any{keyTargets: []string{"k_proj"}, keyLayers: 0}, []string{"0.self_attn.k_proj"}},
	"layers pattern": {map[string]any{keyTargets: []string{"k_proj"}, keyLayers: []int{1}, keyPatterns: "layers"}, []string{"1.self_attn.k_proj"}},
	"layers patterns": {
		map[string]any{keyTargets: []string{"k_proj"}, keyLayers: []int{1}, keyPatterns: []string{"blocks", "lay[a-z]+"}},
		[]string{"1.self_attn.k_proj"},
	},
	"full name beside layers": {
		map[string]any{keyTargets: []string{"k_proj", "model.layers.1.mlp.up_proj"}, keyLayers: []int{0}},
		[]string{"0.self_attn.k_proj", "1.mlp.up_proj"},
	},
	"excluded": {map[string]any{keyTargets: []string{"q_proj", "k_proj"}, keyExclude: []string{"k_proj", "model.layers.0.self_attn.q_proj"}}, []string{"1.self_attn.q_proj", "10.self_attn.q_proj"}},
	"excluded by regex": {
		map[string]any{keyTargets: []string{"q_proj"}, keyExclude: `model\.layers\.1\..*`},
		[]string{"0.self_attn.q_proj", "10.self_attn.q_proj"},
	},
}

// selectedAdapter writes an adapter of the layers that some fields choose, as PEFT does.
func selectedAdapter(t *testing.T, fields map[string]any, layers []string) string {
	a := newAdapter(t, Config{Rank: 2})
	a.layers = slices.DeleteFunc(a.layers, func(l Layer) bool {
		return !slices.Contains(layers, strings.TrimPrefix(l.Name, "model.layers."))
	})
	require.Len(t, a.layers, len(layers))
	dir := t.TempDir()
	require.NoError(t, a.Save(dir, "org/base"))
	return editConfig(t, dir, fields)
}

// TestSelection_AsPEFT: which modules are chosen, and that a checkpoint that was loaded and saved chooses the same ones
// in the same words. The layers and the exclusions were lost: PEFT then adapted all layers.
func TestSelection_AsPEFT(t *testing.T) {
	for name, c := range selections {
		t.Run(name, func(t *testing.T) {
			raw := map[string]json.RawMessage{}
			for key, value := range c.fields {
				text, err := json.Marshal(value)
				require.NoError(t, err)
				raw[key] = text
			}
			s, err := parseSelection(raw)
			require.NoError(t, err)
			var chosen []string
			for _, l := range testLayers() {
				ok, err := s.selects(l)
				require.NoError(t, err)
				if ok {
					chosen = append(chosen, strings.TrimPrefix(l.Name, "model.layers."))
				}
			}
			require.ElementsMatch(t, c.want, chosen)

			a, err := Load(selectedAdapter(t, c.fields, c.want))
			require.NoError(t, err)
			dir := t.TempDir()
			require.NoError(t, a.Clone().Save(dir, "org/base"))
			var saved map[string]json.RawMessage
			require.NoError(t, json.Unmarshal([]byte(readAll(t, dir)[configFile]), &saved))
			for _, key := range []string{keyTargets, keyExclude, keyLayers, keyPatterns} {
				require.Equal(t, string(raw[key]), compactField(saved, key), key)
			}
			again, err := Load(dir)
			require.NoError(t, err)
			require.Equal(t, a.Layers(), again.Layers())
		})
	}
}

// compactField returns a field in one line, "" when it is missing.
func compactField(fields map[string]json.RawMessage, key string) string {
	if raw, ok := fields[key]; ok {
		return compact(raw)
	}
	return ""
}

// TestSelection_Absent: without target_modules the layers that there are are saved by their full names.
func TestSelection_Absent(t *testing.T) {
	a, err := Load(selectedAdapter(t, map[string]any{keyTargets: nil}, []string{"1.mlp.up_proj"}))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, a.Save(dir, "org/base"))
	require.Contains(t, readAll(t, dir)[configFile], `"model.layers.1.mlp.up_proj"`)
	again, err := Load(dir)
	require.NoError(t, err)
	require.Equal(t, a.Layers(), again.Layers())
}

// TestSelection_Refuses: what PEFT would not load with these fields, or would not accept.
func TestSelection_Refuses(t *testing.T) {
	q := []string{"0.self_attn.q_proj"}
	for want, fields := range map[string]map[string]any{
		`layer "model.layers.0.self_attn.q_proj" is not in target_modules`: {keyTargets: `.*layers\.1\..*`},
		`as PEFT reads {"layers_to_transform":[1]`: {keyLayers: []int{1},
			keyTargets: []string{"q_proj"}},
		`"exclude_modules":["q_proj"]`: {keyExclude: []string{"q_proj"},
			keyTargets: []string{"q_proj"}},
		"go with a list of target_modules": {keyLayers: []int{0}, keyTargets: ".*q_proj"},
		"target_modules: ":                 {keyTargets: "(q_proj"},
		"layers_to_transform: ":            {keyLayers: "first", keyTargets: []string{"q_proj"}},
		"layers_pattern: ":                 {keyLayers: 0, keyPatterns: "(", keyTargets: []string{"q_proj"}},
		"exclude_modules: ":                {keyExclude: 7, keyTargets: []string{"q_proj"}},
	} {
		_, err := Load(selectedAdapter(t, fields, q))
		require.ErrorContains(t, err, want)
	}
}

// editConfig overwrites fields of an adapter's configuration; nil removes one.
func editConfig(t *testing.T, dir string, fields map[string]any) string {
	t.Helper()
	var config map[string]any
	require.NoError(t, json.Unmarshal([]byte(readAll(t, dir)[configFile]), &config))
	for key, value := range fields {
		config[key] = value
		if value == nil {
			delete(config, key)
		}
	}
	content, err := json.Marshal(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, configFile), content, 0o600))
	return dir
}

// FuzzSelection: no fields end the process, and those that are read choose the same after they were written.
func FuzzSelection(f *testing.F) {
	for _, c := range selections {
		text, err := json.Marshal(c.fields)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var fields map[string]json.RawMessage
		if json.Unmarshal(text, &fields) != nil {
			return
		}
		first, err := parseSelection(fields)
		if err != nil {
			return
		}
		again, err := parseSelection(first.fields)
		require.NoError(t, err)
		for _, l := range testLayers() {
			x, errX := first.selects(l)
			y, errY := again.selects(l)
			if errX == nil && errY == nil {
				require.Equal(t, x, y)
			}
		}
	})
}

// TestNew_Pattern: a pattern chooses layers as PEFT's target_modules does, and is written as it is.
func TestNew_Pattern(t *testing.T) {
	embedding := LayerShape{Name: "model.embed_tokens", In: 40, Out: 6, Embedding: true}
	layers := append(testLayers(), embedding)
	pattern := `lm_head|model\.(embed_tokens|layers\.(?!10)\d+\.mlp\.up_proj)`
	a, err := New(Config{Pattern: pattern, Rank: 2}, layers, 1)
	require.NoError(t, err)
	var names []string
	for _, l := range a.Layers() {
		names = append(names, l.Name)
	}
	require.Equal(t, []string{"lm_head", "model.embed_tokens", "model.layers.0.mlp.up_proj", "model.layers.1.mlp.up_proj"},
		names)
	l, _ := a.Layer("model.embed_tokens")
	require.Equal(t, make([]float32, 80), l.A, "a new adapter adds nothing")
	require.NotZero(t, l.B[0])
	dir := t.TempDir()
	require.NoError(t, a.Save(dir, "base"))
	read, err := Load(dir)
	require.NoError(t, err)
	require.Equal(t, a.Config(), read.Config())
	require.Equal(t, a.Layers(), read.Layers())
	var config map[string]any
	require.NoError(t, json.Unmarshal([]byte(readAll(t, dir)[configFile]), &config))
	require.Equal(t, pattern, config["target_modules"])

	for text, cfg := range map[string]Config{
		"both set": {Pattern: "x", Targets: []string{"q_proj"}}, "matches no layer; names are such as": {Pattern: "q_proj"},
		"pattern": {Pattern: "("}, "no regular expression": {Pattern: "all-linear"},
	} {
		_, err := New(cfg, layers, 1)
		require.ErrorContains(t, err, text)
	}
}
