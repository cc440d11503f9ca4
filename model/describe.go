package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// textParts are the keys under which a model of several parts has the configuration of its text model.
var textParts = []string{"text_config", "llm_config", "language_config", "llm", "decoder", "thinker_config"}

// senses are the keys of the parts that read or write something else than text.
var senses = []struct{ key, what string }{
	{"vision_config", "images"}, {"vision_tower_config", "images"}, {"mm_vision_tower", "images"},
	{"vit_config", "images"}, {"visual", "images"},
	{"audio_config", "sound"}, {"speech_config", "sound"}, {"encoder_config", "sound"},
}

// classes are the ends of architectures that are no language models.
var classes = []struct{ end, what string }{
	{"ForSequenceClassification", "a classifier or a reward model"}, {"ForTokenClassification", "a classifier of tokens"},
	{"ForRewardModel", "a reward model"}, {"RewardModel", "a reward model"},
	{"ForProcessRewardModel", "a reward model"}, {"ForQuestionAnswering", "a model that marks answers"},
	{"ForMaskedLM", "an encoder"}, {"Model", "a model without an output head, as for embeddings"},
}

// layerKinds are parts of keys that tell of what a text model is built.
var layerKinds = []struct{ part, what string }{
	{"mamba", "Mamba layers"}, {"ssm_", "state-space layers"}, {"linear_num_", "linear attention"},
	{"lightning", "linear attention"}, {"kv_lora_rank", "latent attention"}, {"n_routed_experts", "experts"},
	{"num_local_experts", "experts"}, {"num_experts", "experts"},
}

// describe says what a checkpoint is that no architecture builds; "" when nothing is known.
func describe(c *Config, keys map[string]json.RawMessage) string {
	if name, text, ok := textPart(keys); ok {
		what := "a model of several parts"
		if s := sensesOf(keys); s != "" {
			what = "a model that reads " + s + " too"
		}
		return what + ", around a text model" + textModel(name, text)
	}
	if s := sensesOf(keys); s != "" {
		return "a model that reads " + s + " too"
	}
	if string(keys["is_encoder_decoder"]) == "true" {
		return "an encoder with a decoder"
	}
	for _, class := range c.Architectures {
		for _, k := range classes {
			if strings.HasSuffix(class, k.end) {
				return k.what
			}
		}
	}
	if c.ModelType == "" && !absent(keys["peft_type"]) {
		return "an adapter, not a model: load it beside its base model"
	}
	if kinds := kindsOf(keys); kinds != "" {
		return "a text model with " + kinds
	}
	return ""
}

// textPart returns the configuration of the text model inside another.
func textPart(keys map[string]json.RawMessage) (name string, text map[string]json.RawMessage, ok bool) {
	for _, name := range textParts {
		if json.Unmarshal(keys[name], &text) == nil && len(text) > 0 {
			if inner, inside, ok := textPart(text); ok {
				return name + "." + inner, inside, true
			}
			return name, text, true
		}
	}
	return "", nil, false
}

// textModel names a text model, and says what can be done with it.
func textModel(name string, text map[string]json.RawMessage) string {
	var c Config
	_ = json.Unmarshal(text["model_type"], &c.ModelType) // of another type it is unknown
	switch _, err := c.architecture(); {
	case c.ModelType == "":
		return fmt.Sprintf(" whose model_type %s does not say", name)
	case err == nil:
		return fmt.Sprintf(" of model_type %q: use a checkpoint of that text model alone", c.ModelType)
	}
	kinds := kindsOf(text)
	if kinds != "" {
		kinds = " with " + kinds
	}
	return fmt.Sprintf(" of model_type %q%s, which is not supported either", c.ModelType, kinds)
}

// sensesOf lists what a model reads beside text.
func sensesOf(keys map[string]json.RawMessage) string {
	var list []string
	for _, s := range senses {
		if !absent(keys[s.key]) && !slices.Contains(list, s.what) {
			list = append(list, s.what)
		}
	}
	if !absent(keys["thinker_config"]) { // of the Omni models, which has the senses
		var inside map[string]json.RawMessage
		if json.Unmarshal(keys["thinker_config"], &inside) == nil {
			return cmp.Or(sensesOf(inside), strings.Join(list, " and "))
		}
	}
	return strings.Join(list, " and ")
}

// kindsOf lists of what a text model is built that others are not.
func kindsOf(keys map[string]json.RawMessage) string {
	var list []string
	for _, k := range layerKinds {
		for key, value := range keys {
			if strings.Contains(key, k.part) && !absent(value) && !slices.Contains(neutral, string(value)) &&
				!slices.Contains(list, k.what) {
				list = append(list, k.what)
			}
		}
	}
	return strings.Join(list, " and ")
}
