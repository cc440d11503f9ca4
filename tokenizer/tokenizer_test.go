package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNew_NamesWhatIsNotSupported(t *testing.T) {
	model := func(s string) map[string]string { return map[string]string{"model": s} }
	words := func(s string) map[string]string {
		return map[string]string{"pre_tokenizer": `{"type": "Sequence", "pretokenizers": [` + s + `,
			{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]}`}
	}
	regex := func(s string) map[string]string {
		quoted, _ := json.Marshal(s)
		return words(`{"type": "Split", "pattern": {"Regex": ` + string(quoted) + `}, "behavior": "Isolated", "invert": false}`)
	}
	for _, c := range []struct {
		patch map[string]string
		want  string
	}{
		{map[string]string{"extra": "1"}, "extra"},
		{map[string]string{"version": `"2.0"`}, "2.0"},
		{map[string]string{"truncation": "{}"}, "truncation"},
		{map[string]string{"padding": "{}"}, "padding"},
		{map[string]string{"normalizer": `{"type": "NFKC"}`}, "NFKC"},
		{map[string]string{"normalizer": `{"type": "Sequence", "normalizers": [{"type": "Lowercase"}]}`}, "Lowercase"},
		{map[string]string{"normalizer": `3`}, "normalizer"},
		{map[string]string{"normalizer": `{"type": "NFC", "new_option": 1}`}, "new_option"},
		{map[string]string{"normalizer": `{"type": "Sequence", "new_option": 1}`}, "new_option"},
		{map[string]string{"pre_tokenizer": "null"}, "pre_tokenizer null"},
		{map[string]string{"pre_tokenizer": `{"type": "Metaspace"}`}, "Metaspace"},
		{map[string]string{"pre_tokenizer": `{"type": "Digits", "individual_digits": true}`}, "ByteLevel"},
		{map[string]string{"pre_tokenizer": `{"type": "Sequence", "other": []}`}, "pretokenizers"},
		{words(`{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}`), "last step"},
		{words(`{"type": "ByteLevel", "new_option": 1}`), "new_option"},
		{map[string]string{"pre_tokenizer": `{"type": "Sequence", "pretokenizers": []}`}, "empty"},
		{words(`{"type": "Whitespace"}`), "Whitespace"},
		{words(`{"type": "Digits", "individual_digits": true, "new_option": 1}`), "new_option"},
		{words(`{"type": "Split", "pattern": {"String": "a"}, "behavior": "Shuffled", "invert": false}`), "Shuffled"},
		{words(`{"type": "Split", "pattern": {}, "behavior": "Isolated", "invert": false}`), "no pattern"},
		{words(`{"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": false}`), "no pattern"},
		{regex(`(a`), "regex"},
		{regex(`\w+`), `\\w`},
		{regex(`a\b`), `\\b`},
		{regex(`^a`), "anchor"},
		{regex(`[a[bc]]`), "class within a class"},
		{regex(`[a-z&&b]`), "class within a class"},
		{regex(`(?m)a`), "group"},
		{regex(`a{1,2}+`), "quantifier"},
		{regex(`a{,2}`), "quantifier"},
		{regex(`a\`), "backslash"},
		{map[string]string{"post_processor": `{"type": "BertProcessing"}`}, "BertProcessing"},
		{map[string]string{"post_processor": `{"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}}`}, "0 times"},
		{map[string]string{"post_processor": `{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}],
			"pair": [], "special_tokens": {}}`}, "<s>"},
		{map[string]string{"post_processor": `{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
			{"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [9999], "tokens": ["<s>"]}}}`}, "9999"},
		{map[string]string{"post_processor": `{"type": "Sequence", "processors": [
			{"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}},
			{"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}}]}`}, "two"},
		{map[string]string{"post_processor": `{"type": "TemplateProcessing", "single": [{}], "pair": [], "special_tokens": {}}`}, "piece"},
		{map[string]string{"decoder": `{"type": "ByteLevel", "new_option": 1}`}, "new_option"},
		{map[string]string{"decoder": "null"}, "decoder null"},
		{map[string]string{"decoder": `{"type": "WordPiece"}`}, "WordPiece"},
		{map[string]string{"added_tokens": `[{"id": 600, "content": ""}]`}, "600"},
		{map[string]string{"added_tokens": `[{"id": 600, "content": "x1"}, {"id": 600, "content": "x2"}]`}, "same id"},
		{map[string]string{"added_tokens": `[{"id": 600, "content": "x1"}, {"id": 601, "content": "x1"}]`}, "twice"},
		{map[string]string{"added_tokens": `[{"id": 600, "content": "a"}]`}, "600"},
		{map[string]string{"added_tokens": `[{"id": 64, "content": "x1"}]`}, "same id"},
		{map[string]string{"added_tokens": `[{"id": -1, "content": "x1"}]`}, "out of range"},
		{map[string]string{"added_tokens": `[{"id": 97, "content": "a", "special": true}]`}, "control"},
		{model(`{"type": "Unigram"}`), "Unigram"},
		{model(`{"type": "WordPiece"}`), "WordPiece"},
		{model(`{"dropout": 0.1}`), "dropout"},
		{model(`{"continuing_subword_prefix": "##"}`), "continuing_subword_prefix"},
		{model(`{"end_of_word_suffix": "</w>"}`), "end_of_word_suffix"},
		{model(`{"byte_fallback": true}`), "byte_fallback"},
		{model(`{"new_option": 1}`), "new_option"},
		{model(`{"vocab": {"a": 0}, "merges": []}`), "symbol of byte"},
		{model(`{"merges": [["a", "zzz"]]}`), "zzz"},
		{model(`{"merges": ["a b c"]}`), "two parts"},
		{model(`{"merges": ["ab"]}`), "two parts"},
		{model(`{"merges": [["a"]]}`), "two parts"},
	} {
		raw := map[string]json.RawMessage{}
		for k, v := range c.patch {
			raw[k] = json.RawMessage(v)
		}
		_, err := New(patched(t, raw), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "tokenizer: tokenizer.json: ") {
			t.Errorf("%v: error %v does not say %q", c.patch, err, c.want)
		}
	}
}

func TestNew_Config(t *testing.T) {
	file := testdata(t, "tokenizer.json")
	tok, err := New(file, []byte(`{"bos_token": null, "eos_token": {"content": "<|im_end|>", "lstrip": false},
		"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]}`))
	must(t, err)
	if end, _ := tok.TokenID("<|im_end|>"); !slices.Equal(tok.EOS(), []int32{end}) || len(tok.BOS()) != 0 || tok.ChatTemplate() != "D" {
		t.Errorf("EOS %v, BOS %v, chat template %q", tok.EOS(), tok.BOS(), tok.ChatTemplate())
	}
	for config, want := range map[string]string{
		`{"eos_token": "<none>"}`: "<none>",
		`{"bos_token": "<none>"}`: "<none>",
		`{"eos_token": 3}`:        "eos_token",
		`{"chat_template": 3}`:    "chat_template",
		`[`:                       "unexpected end",
	} {
		if _, err := New(file, []byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not say %q", config, err, want)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "needs tokenizer.json and tokenizer_config.json") {
		t.Errorf("an empty folder: %v", err)
	}
	for name, data := range map[string]string{
		"tokenizer.json":        string(testdata(t, "tokenizer.json")),
		"tokenizer_config.json": `{"eos_token": "<|im_end|>"}`,
		"chat_template.jinja":   "{{ messages }}",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
	tok, err := Load(dir)
	must(t, err)
	if tok.VocabSize() != 542 || len(tok.EOS()) != 1 || tok.ChatTemplate() != "{{ messages }}" {
		t.Errorf("vocabulary %d, EOS %v, chat template %q", tok.VocabSize(), tok.EOS(), tok.ChatTemplate())
	}
}

func TestTokens(t *testing.T) {
	tok := small(t)
	id, ok := tok.TokenID("Ġ")
	if !ok || string(tok.TokenBytes(id)) != " " || tok.IsSpecial(id) {
		t.Errorf("the space has id %d (%v) and bytes %q", id, ok, tok.TokenBytes(id))
	}
	end, _ := tok.TokenID("<|im_end|>")
	if !tok.IsSpecial(end) || string(tok.TokenBytes(end)) != "<|im_end|>" {
		t.Errorf("<|im_end|> has id %d and bytes %q", end, tok.TokenBytes(end))
	}
	if _, ok := tok.TokenID("no such token"); ok {
		t.Error("a token that is not there has an id")
	}
	for _, id := range []int32{-1, int32(tok.VocabSize()), 1 << 30} {
		if tok.TokenBytes(id) != nil || tok.Decode([]int32{id}, false) != "" {
			t.Errorf("id %d decodes to %q", id, tok.TokenBytes(id))
		}
	}
}
