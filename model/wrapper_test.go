package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/dev/fixtures"
	"github.com/goart-dev/art/internal/safetensors"
)

type object = map[string]any

// wrapping are configurations of models that read images around a small text model, by model_type.
func wrapping() map[string]object {
	text := object{
		"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
		"vocab_size": 96, "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "hidden_act": "silu",
	}
	inside := func(kind string, changes object) object {
		c := maps.Clone(text)
		c["model_type"] = kind
		maps.Copy(c, changes)
		return c
	}
	mrope := object{"type": "mrope", "mrope_section": []int{1, 1, 2}}
	list := map[string]object{
		"gemma3":     {"text_config": inside("gemma3_text", object{"sliding_window": 8, "hidden_act": "-"})},
		"mistral3":   {"text_config": inside("mistral", object{"sliding_window": nil, "head_dim": 8})},
		"qwen2_5_vl": {"text_config": inside("qwen2_5_vl_text", object{"rope_scaling": mrope})},
		"qwen3_vl": {"text_config": inside("qwen3_vl_text", object{"head_dim": 16,
			"rope_scaling": object{"rope_type": "default", "mrope_interleaved": true, "mrope_section": []int{4, 2, 2}}})},
	}
	delete(list["gemma3"]["text_config"].(object), "hidden_act")
	for _, w := range wrapperTypes() {
		maps.Copy(list[w.modelType], object{"model_type": w.modelType, "architectures": []string{w.class},
			"vision_config": object{"hidden_size": 16}, "image_token_index": 95})
	}
	return list
}

// within returns a configuration with a key of its text_config set; "-" removes it.
func within(c object, key string, value any) object {
	c = maps.Clone(c)
	text := maps.Clone(c["text_config"].(object))
	if text[key] = value; value == "-" {
		delete(text, key)
	}
	c["text_config"] = text
	return c
}

func parsed(c object) (*Config, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return ParseConfig(data)
}

// TestWrapper_ForwardKeys: each key inside of text_config that changes the forward pass is read, or refused by its
// name.
func TestWrapper_ForwardKeys(t *testing.T) {
	for name, c := range wrapping() {
		read, err := parsed(c)
		require.NoError(t, err, name)
		a, err := read.architecture()
		require.NoError(t, err)
		for key := range forwardKeys {
			if slices.Contains(a.reads, key) {
				continue
			}
			for _, value := range []any{7, 0.5, "other", []int{3}, object{"x": 1}} {
				_, err := parsed(within(c, key, value))
				require.ErrorContains(t, err, key, "%s: %v", name, value)
			}
		}
	}
}

// TestWrapper_RoundTrip: what is written is what was read, positions with three axes included, and is read as the same.
func TestWrapper_RoundTrip(t *testing.T) {
	for name, c := range wrapping() {
		read, err := parsed(c)
		require.NoError(t, err, name)
		data, err := json.Marshal(read)
		require.NoError(t, err)
		again, err := ParseConfig(data)
		require.NoError(t, err, string(data))
		require.Equal(t, read, again)
		var written, before object
		require.NoError(t, json.Unmarshal(data, &written))
		text, err := json.Marshal(c)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &before))
		for key, value := range before {
			if key != "text_config" {
				require.Equal(t, value, written[key], "%s: %s", name, key)
			}
		}
		inside := written["text_config"].(object)
		for key, value := range before["text_config"].(object) {
			if key == "rope_scaling" {
				require.Equal(t, value.(object)["mrope_section"], inside[key].(object)["mrope_section"], name)
			} else {
				require.Equal(t, value, inside[key], "%s: %s", name, key)
			}
		}
	}
}

// TestWrapper_Flat: the keys of a text model that are not in a text_config mean the same.
func TestWrapper_Flat(t *testing.T) {
	c := wrapping()["qwen2_5_vl"]
	want, err := parsed(c)
	require.NoError(t, err)
	flat := maps.Clone(c)
	maps.Copy(flat, c["text_config"].(object))
	maps.Copy(flat, object{"model_type": "qwen2_5_vl", "some_later_key": 3})
	delete(flat, "text_config")
	got, err := parsed(flat)
	require.NoError(t, err)
	require.Equal(t, "3", string(got.extra["some_later_key"]))
	got.extra = nil
	require.Contains(t, got.wrapper.outside, "vision_config")
	got.wrapper.outside, want.wrapper.outside = nil, nil
	require.Equal(t, want, got)
}

// TestWrapper_Refuses: what is wrong is named.
func TestWrapper_Refuses(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(c object) object
	}{
		{"gemma3", "has its text model in text_config, which is missing", func(c object) object { return with(c, "text_config", nil) }},
		{"qwen3_vl", "text_config: json: cannot unmarshal", func(c object) object { return with(c, "text_config", []int{3}) }},
		{"gemma3", `model_type "gemma4_text" is not supported inside of gemma3: this version builds gemma3_text`, func(c object) object { return within(c, "model_type", "gemma4_text") }},
		{"mistral3", `model_type "ministral3" is not supported inside of mistral3`, func(c object) object { return within(c, "model_type", "ministral3") }},
		{"mistral3", "text_config: model_type: ", func(c object) object { return within(c, "model_type", 3) }},
		{"mistral3", "text_config is not supported", func(c object) object { return within(c, "text_config", c) }},
		{"gemma3", `architectures ["Gemma3ForSequenceClassification"] is not supported with model_type "gemma3"`, func(c object) object { return with(c, "architectures", []string{"Gemma3ForSequenceClassification"}) }},
		{"gemma3", "tie_word_embeddings is false in text_config, and for the whole model it is true", func(c object) object { return within(c, "tie_word_embeddings", false) }},
		{"qwen3_vl", "tie_word_embeddings is true in text_config, and for the whole model it is false", func(c object) object { return within(c, "tie_word_embeddings", true) }},
		{"qwen2_5_vl", "tie_word_embeddings is true in text_config", func(c object) object {
			return within(with(c, "tie_word_embeddings", false), "tie_word_embeddings", true)
		}},
		{"qwen3_vl", "tie_word_embeddings: ", func(c object) object { return with(c, "tie_word_embeddings", 3) }},
		{"gemma3", "final_logit_softcapping is 30, which transformers does not apply", func(c object) object { return within(c, "final_logit_softcapping", 30.0) }},
		{"gemma3", "attn_logit_softcapping is 50, which transformers does not apply", func(c object) object { return within(c, "attn_logit_softcapping", 50.0) }},
		{"mistral3", "sliding_window is 0: want null", func(c object) object { return within(c, "sliding_window", 0) }},
		{"mistral3", "the weights are quantized by fine-grained FP8", func(c object) object { return with(c, "quantization_config", object{"quant_method": "fp8"}) }},
		{"mistral3", "mrope_section is not supported", func(c object) object { return within(c, "rope_scaling", object{"mrope_section": []int{1}}) }},
		{"qwen3_vl", `rope_type "xpos" is not supported`, func(c object) object {
			return within(c, "rope_scaling", object{"rope_type": "xpos", "mrope_section": []int{1}})
		}},
		{"qwen3_vl", "num_hidden_layers is 0", func(c object) object { return within(c, "num_hidden_layers", 0) }},
	} {
		_, err := parsed(c.change(wrapping()[c.name]))
		require.ErrorContains(t, err, c.want, "%s: %s", c.name, c.want)
	}
	_, err := parsed(object{"model_type": "qwen3_vl_text", "hidden_size": 3})
	require.ErrorContains(t, err, `model_type "qwen3_vl_text" is not supported`, "alone there is no class for it")
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, ConfigFile))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(100<<20))
	require.NoError(t, f.Close())
	_, err = LoadConfig(dir)
	require.ErrorContains(t, err, "it is no configuration of a model")
}

// TestWrapper_Tied: where the head has the weights of the embedding is what transformers 5 takes it for.
func TestWrapper_Tied(t *testing.T) {
	same := func(c object) object { return c }
	for _, c := range []struct {
		name   string
		change func(c object) object
		want   bool
	}{
		{"gemma3", same, true}, {"mistral3", same, false}, {"qwen2_5_vl", same, false}, {"qwen3_vl", same, false},
		{"gemma3", func(c object) object { return with(c, "tie_word_embeddings", false) }, false},
		{"gemma3", func(c object) object { return with(c, "tie_word_embeddings", nil) }, false},
		{"mistral3", func(c object) object { return with(c, "tie_word_embeddings", true) }, true},
		{"mistral3", func(c object) object { return within(c, "tie_word_embeddings", true) }, true},
		{"qwen2_5_vl", func(c object) object { return within(c, "tie_word_embeddings", true) }, true},
	} {
		read, err := parsed(c.change(wrapping()[c.name]))
		require.NoError(t, err)
		require.Equal(t, c.want, read.TieEmbeddings, c.name)
	}
}

// TestWrapper_Gemma3Defaults: what the published text_config of 4B leaves out is what transformers takes it for.
func TestWrapper_Gemma3Defaults(t *testing.T) {
	c, err := parsed(object{"model_type": "gemma3", "text_config": object{"model_type": "gemma3_text", "hidden_size": 2560,
		"intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024,
		"rope_scaling": object{"factor": 8.0, "rope_type": "linear"}}})
	require.NoError(t, err)
	require.Equal(t, []int{262208, 8, 4, 256, 131072},
		[]int{c.VocabSize, c.NumHeads, c.NumKVHeads, c.HeadDim, c.MaxPositions})
	require.True(t, c.TieEmbeddings)
	require.Equal(t, []float64{1e6, 1e4}, []float64{c.RopeTheta, c.RopeLocalTheta})
	require.Equal(t, "model.language_model.layers.33.self_attn.q_proj", c.Linears()[33*7].Name)
}

// eachWrapped calls test with each fixture that reads images.
func eachWrapped(t *testing.T, test func(t *testing.T, m *fixtures.Model, c *Checkpoint)) {
	seen := map[string]bool{}
	for _, m := range fixtures.Models(t) {
		c, err := Open(m.Dir)
		require.NoError(t, err)
		if c.Config.wrapper != nil {
			seen[c.Config.ModelType] = true
			t.Run(m.Name, func(t *testing.T) { test(t, &m, c) })
		}
		require.NoError(t, c.Close())
	}
	require.Len(t, seen, len(wrapperTypes()))
}

// TestWrapper_Save: a model is written with the names that it was read by, with the other parts bit for bit, and edited
// by the names of modules.
func TestWrapper_Save(t *testing.T) {
	eachWrapped(t, func(t *testing.T, m *fixtures.Model, c *Checkpoint) {
		require.NotEmpty(t, c.Skipped())
		dir := t.TempDir()
		var edited []string
		edit := func(name string, _ []float32) error {
			edited = append(edited, name)
			return nil
		}
		require.NoError(t, c.Save(dir, &SaveOptions{DType: BFloat16, ShardBytes: 20000, Edit: edit}))
		var modules []string
		for _, s := range c.Config.Specs() {
			modules = append(modules, s.Name)
		}
		require.Equal(t, modules, edited)
		before, err := safetensors.OpenIndex(m.Dir)
		require.NoError(t, err)
		after, err := safetensors.OpenIndex(dir)
		require.NoError(t, err)
		require.ElementsMatch(t, before.Names(), after.Names())
		for _, name := range c.Skipped() {
			x, _ := before.Tensor(name)
			y, _ := after.Tensor(name)
			require.Equal(t, x, y, name)
		}
		again, err := LoadConfig(dir)
		require.NoError(t, err)
		require.Equal(t, BFloat16, again.TorchDType)
		var written object
		data, err := os.ReadFile(filepath.Join(dir, ConfigFile))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, &written))
		require.Equal(t, BFloat16, written["torch_dtype"])
		require.NoError(t, before.Close())
		require.NoError(t, after.Close())
	})
}

// renamed is a fixture whose tensors have other names.
func renamed(t *testing.T, m *fixtures.Model, rename func(name string) string) (*Checkpoint, error) {
	t.Helper()
	set, err := safetensors.OpenIndex(m.Dir)
	require.NoError(t, err)
	defer func() { require.NoError(t, set.Close()) }()
	var list []safetensors.Tensor
	for _, name := range set.Names() {
		x, _ := set.Tensor(name)
		if x.Name = rename(name); x.Name != "" {
			list = append(list, x)
		}
	}
	dir := t.TempDir()
	config, err := os.ReadFile(filepath.Join(m.Dir, ConfigFile))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, ConfigFile), config, 0o600))
	f, err := os.Create(filepath.Join(dir, WeightsFile))
	require.NoError(t, err)
	require.NoError(t, safetensors.Write(f, list, nil))
	require.NoError(t, f.Close())
	return Open(dir)
}

// TestWrapper_Prefixes: files of all versions of transformers hold the same model, and are written as they were read.
func TestWrapper_Prefixes(t *testing.T) {
	eachWrapped(t, func(t *testing.T, m *fixtures.Model, c *Checkpoint) {
		want := c.Weights()
		for _, prefix := range []string{
			"model.", "model.language_model.", "language_model.model.", "model.language_model.model.",
		} {
			rename := func(stored string) string {
				name, _, skip := textName(stored)
				if rest, ok := strings.CutPrefix(name, towerRoot); ok && !skip {
					return prefix + rest
				}
				return stored
			}
			got, err := renamed(t, m, rename)
			require.NoError(t, err)
			dir := t.TempDir()
			require.NoError(t, got.Save(dir, nil))
			require.Equal(t, prefix, got.Config.wrapper.files)
			got.Config.wrapper.files = want.Config.wrapper.files
			sameWeights(t, want, got.Weights())
			set, err := safetensors.OpenIndex(dir)
			require.NoError(t, err)
			require.Contains(t, set.Names(), prefix+"layers.0.self_attn.q_proj.weight")
			require.NoError(t, set.Close())
			require.NoError(t, got.Close())
		}
	})
}

// TestWrapper_Tensors: a tensor that is left over or missing is an error, and so is one that is there twice; other
// parts may be missing.
func TestWrapper_Tensors(t *testing.T) {
	eachWrapped(t, func(t *testing.T, m *fixtures.Model, _ *Checkpoint) {
		first := ""
		for _, c := range []struct{ name, want string }{
			{"other.tower.weight", "the checkpoint has other.tower.weight, which"},
			{"model.language_model.model.norm.weight", "twice"},
			{"", "the checkpoint has no model.language_model."},
		} {
			_, err := renamed(t, m, func(name string) string {
				if _, _, skip := textName(name); !skip && (first == "" || first == name) && strings.Contains(name, "layers.0.") {
					first = name
					return c.name
				}
				return name
			})
			require.ErrorContains(t, err, c.want)
		}
		alone, err := renamed(t, m, func(name string) string {
			if _, _, skip := textName(name); skip {
				return ""
			}
			return name
		})
		require.NoError(t, err)
		require.Empty(t, alone.Skipped())
		require.NoError(t, alone.Close())
	})
}

// TestTextName covers the names that there are in files.
func TestTextName(t *testing.T) {
	for stored, want := range map[string]string{
		"language_model.model.layers.3.mlp.up_proj.weight": "model.language_model.layers.3.mlp.up_proj.weight language_model.model. false",
		"model.language_model.norm.weight":                 "model.language_model.norm.weight model.language_model. false",
		"model.norm.weight":                                "model.language_model.norm.weight model. false",
		"language_model.lm_head.weight":                    "lm_head.weight language_model. false",
		"lm_head.weight":                                   "lm_head.weight  false",
		"visual.blocks.0.norm1.weight":                     "visual.blocks.0.norm1.weight  true",
		"model.visual.merger.norm.weight":                  "model.visual.merger.norm.weight  true",
		"vision_tower.x":                                   "vision_tower.x  true",
		"model.multi_modal_projector.x":                    "model.multi_modal_projector.x  true",
		"mtp.layers.0.x":                                   "mtp.layers.0.x  true",
		"visualx.y":                                        "visualx.y  false",
	} {
		name, files, skip := textName(stored)
		require.Equal(t, want, fmt.Sprintf("%s %s %v", name, files, skip))
	}
}
