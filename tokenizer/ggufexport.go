package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ExportGGUF converts the metadata of a GGUF file that [FromGGUF] reads to the contents of tokenizer.json and
// tokenizer_config.json, from which [New] and Hugging Face's library build the same tokenizer. It supports only
// byte-level BPE, the model "gpt2".
func ExportGGUF(meta map[string]any) (tokenizerJSON, configJSON []byte, err error) {
	g := ggufMeta(meta)
	if _, err := fromGGUF(g); err != nil {
		return nil, nil, fmt.Errorf("tokenizer: GGUF: %w", err)
	}
	if g["tokenizer.ggml.model"] != "gpt2" || g.flag("tokenizer.ggml.add_space_prefix", false) {
		return nil, nil, errors.New("tokenizer: GGUF: only byte-level BPE without a prefix can be written as " +
			"tokenizer.json: use the files of the original model")
	}
	if tokenizerJSON, err = json.Marshal(g.tokenizerJSON()); err != nil {
		return nil, nil, err
	}
	configJSON, err = json.MarshalIndent(g.tokenizerConfig(), "", "  ")
	return tokenizerJSON, configJSON, err
}

// section is a JSON object; its keys are written in sorted order.
type section = map[string]any

// tokenizerJSON returns the contents of tokenizer.json for valid metadata.
func (g ggufMeta) tokenizerJSON() section {
	tokens, _ := ggufList[string](g, "tokenizer.ggml.tokens")
	merges, _ := ggufList[string](g, "tokenizer.ggml.merges")
	kinds, _ := g.kinds(len(tokens))
	vocab, added := map[string]int{}, []section{}
	for id, text := range tokens {
		vocab[text] = id
		if k := kinds[id]; k == controlPiece || k == userPiece || k == unknownPiece {
			added = append(added, section{
				"id": id, "content": text, "special": k != userPiece,
				"single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
			})
		}
	}
	name, _ := g["tokenizer.ggml.pre"].(string)
	pre := ggufPatterns[name]
	steps := []section{}
	for _, p := range pre.patterns {
		steps = append(steps, section{
			"type": "Split", "pattern": section{"Regex": p}, "behavior": "Isolated", "invert": false,
		})
	}
	byteLevel := section{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
	file := section{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil,
		"pre_tokenizer":  section{"type": "Sequence", "pretokenizers": append(steps, byteLevel)},
		"post_processor": g.postProcessor(tokens, pre, byteLevel), "decoder": byteLevel,
		"model": section{
			"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "ignore_merges": pre.whole, "vocab": vocab, "merges": merges,
		},
	}
	if pre.nfc {
		file["normalizer"] = section{"type": "NFC"}
	}
	return file
}

// postProcessor returns the post-processor that adds the special tokens the file specifies; otherwise if there are
// none.
func (g ggufMeta) postProcessor(tokens []string, pre ggufPattern, otherwise section) section {
	single, special := []section{{"Sequence": section{"id": "A", "type_id": 0}}}, section{}
	piece := func(id int32) section {
		text := tokens[id]
		special[text] = section{"id": text, "ids": []int32{id}, "tokens": []string{text}}
		return section{"SpecialToken": section{"id": text, "type_id": 0}}
	}
	if id := g.id("bos", len(tokens)); id != absent && g.flag("tokenizer.ggml.add_bos_token", pre.bos) {
		single = slices.Insert(single, 0, piece(id))
	}
	if id := g.id("eos", len(tokens)); id != absent && g.flag("tokenizer.ggml.add_eos_token", false) {
		single = append(single, piece(id))
	}
	if len(special) == 0 {
		return otherwise
	}
	pair := append(slices.Clone(single), section{"Sequence": section{"id": "B", "type_id": 1}})
	return section{"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}
}

// tokenizerConfig returns the contents of tokenizer_config.json.
func (g ggufMeta) tokenizerConfig() section {
	tokens, _ := ggufList[string](g, "tokenizer.ggml.tokens") // it is valid
	config := section{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false}
	named := map[string]string{"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
	for key, name := range named {
		if id := g.id(name, len(tokens)); id != absent {
			config[key] = tokens[id]
		}
	}
	templates := g.chatTemplates()
	switch only, ok := templates[DefaultTemplate]; {
	case ok && len(templates) == 1:
		config["chat_template"] = only
	case len(templates) > 0:
		var list []section
		for _, name := range slices.Sorted(maps.Keys(templates)) {
			list = append(list, section{"name": name, "template": templates[name]})
		}
		config["chat_template"] = list
	}
	return config
}
