package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/brief"
	"github.com/goart-dev/art/internal/safetensors"
)

// wrapperType is a model_type of models that read images too, around a text model. The text model alone is built: its
// configuration is in text_config. The modules have the same names in all of them, as transformers 5 has them and as
// PEFT names adapters: "model.language_model.layers.0.self_attn.q_proj". Files name tensors otherwise.
type wrapperType struct {
	modelType, class string
	texts            []string // model types of text_config; the first one where it does not say
	flat             bool     // without a text_config its keys are outside
	files            string   // what precedes the names of the text model's tensors in files, as published
	mrope            bool     // positions have three axes, which are equal for text: then it is plain RoPE

	tied     bool // the default of tie_word_embeddings
	disputed bool // versions of transformers differ in that default: files with a head are not tied
	forwards bool // without one, a true tie_word_embeddings of text_config counts
}

func wrapperTypes() []wrapperType {
	return []wrapperType{
		{modelType: "gemma3", class: "Gemma3ForConditionalGeneration", texts: []string{gemma3.modelType},
			files: "language_model.model.", tied: true},
		{modelType: "mistral3", class: "Mistral3ForConditionalGeneration", texts: []string{mistral.modelType},
			files: "language_model.model.", disputed: true},
		{modelType: "qwen2_5_vl", class: "Qwen2_5_VLForConditionalGeneration", texts: []string{qwen25VL.modelType},
			files: "model.", flat: true, mrope: true, forwards: true},
		{modelType: "qwen3_vl", class: "Qwen3VLForConditionalGeneration", texts: []string{qwen3VL.modelType},
			files: towerRoot, mrope: true},
	}
}

// wrapper is what a [Config] keeps of the model that its text model is a part of.
type wrapper struct {
	outside map[string]json.RawMessage // the keys beside text_config that are of the whole model alone
	mrope   map[string]json.RawMessage // those of positions with three axes
	files   string                     // what precedes the names of the text model's tensors in files
	untold  bool                       // whether the head is tied is disputed
}

// towerRoot precedes the names of the modules of the text model.
const towerRoot = "model.language_model."

// unwrap returns the keys of the text model of a configuration that wraps one, and sets c.wrapper; keys itself where it
// wraps none.
func (c *Config) unwrap(keys map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	var outer Config
	if err := outer.readType(keys); err != nil {
		return nil, err
	}
	types := wrapperTypes()
	at := slices.IndexFunc(types, func(w wrapperType) bool { return w.modelType == outer.ModelType })
	if at < 0 {
		return keys, nil
	}
	w := types[at]
	if len(outer.Architectures) > 0 && !slices.Contains(outer.Architectures, w.class) {
		return nil, fmt.Errorf("architectures %q is not supported with model_type %q: this version builds the text model "+
			"of %s", outer.Architectures, outer.ModelType, w.class)
	}
	inner, outside, err := w.split(keys)
	if err != nil {
		return nil, err
	}
	var text Config
	if err := json.Unmarshal(inner["model_type"], &text.ModelType); err != nil {
		return nil, fmt.Errorf("text_config: model_type: %w", err)
	}
	if !slices.Contains(w.texts, text.ModelType) {
		return nil, fmt.Errorf("text_config: model_type %q is not supported inside of %s: this version builds %s",
			brief.Text(text.ModelType), w.modelType, strings.Join(w.texts, ", "))
	}
	c.wrapper = &wrapper{outside: outside, files: w.files}
	if err := c.wrapper.tie(w, inner); err != nil {
		return nil, err
	}
	if w.mrope {
		err = c.wrapper.takeMRope(inner)
	}
	return inner, err
}

// split returns the keys of the text model, and those outside. What concerns both is inside too.
func (w wrapperType) split(keys map[string]json.RawMessage) (inner, outside map[string]json.RawMessage, err error) {
	outside = maps.Clone(keys)
	delete(outside, "text_config")
	switch raw := keys["text_config"]; {
	case !absent(raw):
		if err := json.Unmarshal(raw, &inner); err != nil {
			return nil, nil, fmt.Errorf("text_config: %w", err)
		}
	case w.flat:
		inner = map[string]json.RawMessage{}
		for key, v := range outside {
			if !slices.Contains(ofWrapper, key) && !strings.HasPrefix(key, "vision_") && !strings.HasSuffix(key, "_token_id") {
				inner[key] = v
				delete(outside, key)
			}
		}
		if v, ok := inner["tie_word_embeddings"]; ok { // which is the whole model's
			outside["tie_word_embeddings"] = v
		}
	default:
		return nil, nil, fmt.Errorf("model_type %q has its text model in text_config, which is missing: fetch the "+
			"config.json again", w.modelType)
	}
	if absent(inner["model_type"]) || w.flat && absent(keys["text_config"]) {
		inner["model_type"] = json.RawMessage(`"` + w.texts[0] + `"`)
	}
	delete(inner, "architectures") // some have the class that it would have alone
	for key, v := range outside {
		if slices.Contains(ofBoth, key) && !absent(v) && absent(inner[key]) {
			inner[key] = v
		}
		if outside[key], err = json.Marshal(v); err != nil { // compact, so that it is written as it was read
			return nil, nil, err
		}
	}
	return inner, outside, nil
}

// ofBoth are keys of the whole model that concern its text model.
var ofBoth = append([]string{"architectures", "torch_dtype", "dtype"}, quantizationKeys...)

// ofWrapper are keys that a flat configuration has of the whole model.
var ofWrapper = []string{"architectures", "model_type", "transformers_version", "torch_dtype", "dtype"}

// tie sets tie_word_embeddings of the text model to what the whole model has.
func (w *wrapper) tie(t wrapperType, inner map[string]json.RawMessage) error {
	tied, said, err := boolean(w.outside["tie_word_embeddings"])
	inside, saidInside, errInside := boolean(inner["tie_word_embeddings"])
	if err := errors.Join(err, errInside); err != nil {
		return fmt.Errorf("tie_word_embeddings: %w", err)
	}
	if !said {
		tied, w.untold = t.tied, t.disputed && !saidInside
		if saidInside && (t.disputed || t.forwards && inside) {
			tied = inside
		}
	}
	if saidInside && inside != tied {
		return fmt.Errorf("tie_word_embeddings is %v in text_config, and for the whole model it is %v: keep one", inside,
			tied)
	}
	inner["tie_word_embeddings"], err = json.Marshal(tied)
	for _, key := range []string{"tie_word_embeddings", "torch_dtype", "dtype"} { // the text model has them now
		delete(w.outside, key)
	}
	return err
}

func boolean(raw json.RawMessage) (value, said bool, err error) {
	if raw == nil {
		return false, false, nil
	}
	err = json.Unmarshal(raw, &value) // null is false
	return value, true, err
}

// mropeKeys set positions in time, height and width, which are equal for text: then it is plain RoPE.
var mropeKeys = []string{"mrope_section", "mrope_interleaved"}

// takeMRope moves the keys of positions in three axes out of those of RoPE.
func (w *wrapper) takeMRope(inner map[string]json.RawMessage) error {
	for _, name := range []string{"rope_scaling", "rope_parameters"} {
		if absent(inner[name]) {
			continue
		}
		var rope map[string]json.RawMessage
		if err := json.Unmarshal(inner[name], &rope); err != nil {
			return fmt.Errorf("text_config: %s: %w", name, err)
		}
		for key, v := range rope {
			switch {
			case slices.Contains(mropeKeys, key):
				if w.mrope == nil {
					w.mrope = map[string]json.RawMessage{}
				}
				var err error
				if w.mrope[key], err = json.Marshal(v); err != nil { // compact, as it is written
					return err
				}
				delete(rope, key)
			case (key == "type" || key == "rope_type") && string(v) == `"mrope"`:
				rope[key] = json.RawMessage(`"default"`)
			}
		}
		var err error
		if inner[name], err = json.Marshal(rope); err != nil {
			return err
		}
	}
	return nil
}

// wrap returns the configuration of the whole model around that of its text model.
func (w *wrapper) wrap(c *Config, text []byte) ([]byte, error) {
	var inner map[string]json.RawMessage
	if err := json.Unmarshal(text, &inner); err != nil {
		return nil, err
	}
	delete(inner, "architectures")
	if w.mrope != nil {
		rope := map[string]json.RawMessage{"rope_type": json.RawMessage(`"default"`)}
		if raw := inner["rope_scaling"]; !absent(raw) {
			if err := json.Unmarshal(raw, &rope); err != nil {
				return nil, err
			}
		}
		maps.Copy(rope, w.mrope)
		var err error
		if inner["rope_scaling"], err = json.Marshal(rope); err != nil {
			return nil, err
		}
	}
	whole := map[string]any{"text_config": inner}
	for key, v := range w.outside {
		whole[key] = v
	}
	if c.TorchDType != "" {
		whole["torch_dtype"] = c.TorchDType
	}
	if !w.untold {
		whole["tie_word_embeddings"] = c.TieEmbeddings
	} else {
		delete(inner, "tie_word_embeddings")
	}
	return json.Marshal(whole)
}

// otherParts are what precedes the names of tensors that read images or sound, or predict several tokens at once.
var otherParts = []string{
	"visual.", "vision_tower.", "vision_model.", "multi_modal_projector.", "embed_vision.", "embed_audio.", "audio_tower.",
}

// textName returns the name of the module for a tensor of a file of a whole model, and what precedes it in the file.
// skip says that the tensor is of another part; its name is the file's.
func textName(stored string) (name, files string, skip bool) {
	rest := strings.TrimPrefix(stored, "model.")
	if strings.HasPrefix(stored, "mtp.") ||
		slices.ContainsFunc(otherParts, func(part string) bool { return strings.HasPrefix(rest, part) }) {
		return stored, "", true
	}
	if head, ok := strings.CutPrefix(strings.TrimPrefix(stored, "language_model."), headLayer+"."); ok {
		return headLayer + "." + head, strings.TrimSuffix(stored, headLayer+"."+head), false
	}
	for _, prefix := range []string{ // some versions of transformers 5 wrote the longest
		"model.language_model.model.", "language_model.model.model.", towerRoot, "language_model.model.", "model.",
	} {
		if rest, ok := strings.CutPrefix(stored, prefix); ok {
			return towerRoot + rest, prefix, false
		}
	}
	return stored, "", false
}

// towerSet gives the tensors of the text model in the files of a whole model their names as modules.
type towerSet struct {
	tensorSet
	stored  map[string]string // names in the files
	names   []string
	skipped []string
}

// tower opens the text model in the files of a whole model.
func (c *Config) tower(set tensorSet) (tensorSet, error) {
	t := &towerSet{tensorSet: set, stored: map[string]string{}}
	for _, stored := range set.Names() {
		name, files, skip := textName(stored)
		if skip {
			t.skipped = append(t.skipped, stored)
			continue
		}
		if other, ok := t.stored[name]; ok {
			return nil, fmt.Errorf("model: the checkpoint has %s twice, as %s and %s", name, other, stored)
		}
		t.stored[name] = stored
		t.names = append(t.names, name)
		if name == towerRoot+embedName+weightSuffix {
			c.wrapper.files = files
		}
	}
	if _, ok := t.stored[headLayer+weightSuffix]; c.wrapper.untold && len(t.names) > 0 {
		c.TieEmbeddings, c.wrapper.untold = !ok, false
	}
	return t, nil
}

// Names returns the names of modules.
func (t *towerSet) Names() []string { return slices.Clone(t.names) }

// Tensor returns a tensor by the name of its module.
func (t *towerSet) Tensor(name string) (storedTensor, bool) {
	stored, ok := t.stored[name]
	if !ok {
		return storedTensor{}, false
	}
	return t.tensorSet.Tensor(stored)
}

// Release lets the system evict the pages of a tensor.
func (t *towerSet) Release(name string) { t.tensorSet.Release(t.stored[name]) }

// sources are the tensors of other parts, as they are.
func (t *towerSet) sources() (list []safetensors.Source) {
	for _, name := range t.skipped {
		stored, _ := t.tensorSet.Tensor(name)
		list = append(list, safetensors.Source{
			Name: name, DType: safetensors.DType(stored.Type), Shape: stored.Shape, Write: func(w io.Writer) error {
				_, err := w.Write(stored.Data)
				t.tensorSet.Release(name)
				return err
			}})
	}
	return list
}

// fileName returns the name of a tensor in the files of a model.
func (c *Config) fileName(name string) string {
	if c.wrapper == nil {
		return name
	}
	if rest, ok := strings.CutPrefix(name, towerRoot); ok {
		return c.wrapper.files + rest
	}
	if strings.HasPrefix(c.wrapper.files, "language_model.") { // the head is beside "language_model.model."
		return "language_model." + name
	}
	return name
}
