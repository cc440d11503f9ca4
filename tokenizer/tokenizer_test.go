package tokenizer

import (
	"encoding/base64"
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
		return words(`{"type": "Split", "pattern": {"Regex": ` + string(quoted) +
			`}, "behavior": "Isolated", "invert": false}`)
	}
	const tenfold = `{"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"}`
	for _, c := range []struct {
		patch map[string]string
		want  string
	}{
		{map[string]string{"extra": "1"}, "extra"},
		{map[string]string{"version": `"2.0"`}, "2.0"},
		{map[string]string{"normalizer": `{"type": "BertNormalizer"}`}, "BertNormalizer"},
		{map[string]string{"normalizer": `{"type": "Sequence", "normalizers": [{"type": "Uppercase"}]}`}, "Uppercase"},
		{map[string]string{"normalizer": `{"type": "Sequence", "other": []}`}, "normalizers"},
		{map[string]string{"normalizer": `3`}, "normalizer"},
		{map[string]string{"normalizer": `{"type": "Prepend", "prepend": ""}`}, "empty"},
		{map[string]string{"normalizer": `{"type": "Replace", "pattern": {"String": ""}, "content": "x"}`}, "no pattern"},
		{map[string]string{"normalizer": `{"type": "Precompiled", "precompiled_charsmap": "AAA"}`}, "base64"},
		{map[string]string{"normalizer": `{"type": "Precompiled", "precompiled_charsmap": "AAA="}`}, "shorter"},
		{map[string]string{"normalizer": `{"type": "Precompiled", "precompiled_charsmap": "/////w=="}`}, "shorter"},
		{map[string]string{"normalizer": `{"type": "Precompiled", "precompiled_charsmap": "` + base64.StdEncoding.EncodeToString(append(make([]byte, 4), strings.Repeat("a", 256)...)) + `"}`}, "256 bytes"},
		{map[string]string{"normalizer": `{"type": "Sequence", "normalizers": [` + strings.Repeat(tenfold+", ", 4) + tenfold + `]}`}, "would grow more than 65536 times"},
		{map[string]string{"decoder": `{"type": "Sequence", "decoders": [` + strings.Repeat(tenfold+", ", 4) + tenfold + `]}`}, "would grow more than 65536 times"},
		{map[string]string{"normalizer": `{"type": "Sequence", "normalizers": [{"type": "ByteLevel"}, {"type": "NFC"}]}`}, "after ByteLevel"},
		{map[string]string{"normalizer": `{"type": "ByteLevel"}`}, "ByteLevel is both"},
		{map[string]string{"pre_tokenizer": `{"type": "UnicodeScripts"}`}, "UnicodeScripts"},
		{map[string]string{"pre_tokenizer": `{"type": "Metaspace", "replacement": ""}`}, "replacement"},
		{map[string]string{"pre_tokenizer": `{"type": "Metaspace", "replacement": "_", "prepend_scheme": "last"}`}, "last"},
		{map[string]string{"pre_tokenizer": `{"type": "FixedLength", "length": 0}`}, "length"},
		{map[string]string{"pre_tokenizer": `{"type": "CharDelimiterSplit", "delimiter": "ab"}`}, "ab"},
		{map[string]string{"pre_tokenizer": `{"type": "Punctuation", "behavior": "Shuffled"}`}, "Shuffled"},
		{map[string]string{"pre_tokenizer": `{"type": "Sequence", "other": []}`}, "pretokenizers"},
		{words(`{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}`), "repeated"},
		{words(`{"type": "ByteLevel"}, {"type": "Metaspace", "replacement": "_"}`), "after ByteLevel"},
		{words(`{"type": "Split", "pattern": {"String": "a"}, "behavior": "Shuffled", "invert": false}`), "Shuffled"},
		{words(`{"type": "Split", "pattern": {}, "behavior": "Isolated", "invert": false}`), "no pattern"},
		{words(`{"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": false}`), "no pattern"},
		{regex(`(a`), "regex"},
		{regex(`(a)\1`), `\\1`},
		{map[string]string{"post_processor": `{"type": "PairProcessing"}`}, "PairProcessing"},
		{map[string]string{"post_processor": `{"type": "BertProcessing", "cls": ["a"], "sep": ["b", 2]}`}, "cls and sep"},
		{map[string]string{"post_processor": `{"type": "RobertaProcessing", "cls": ["a", 9999], "sep": ["b", 2]}`}, "9999"},
		{map[string]string{"post_processor": `{"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}}`}, "0 times"},
		{map[string]string{"post_processor": `{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}],
			"pair": [], "special_tokens": {}}`}, "<s>"},
		{map[string]string{"post_processor": `{"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
			{"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [9999], "tokens": ["<s>"]}}}`}, "9999"},
		{map[string]string{"post_processor": `{"type": "TemplateProcessing", "single": [{}], "pair": [], "special_tokens": {}}`}, "piece"},
		{map[string]string{"decoder": `{"type": "WordPiece"}`}, "WordPiece"},
		{map[string]string{"decoder": `{"type": "Strip", "content": "ab", "start": 0, "stop": 0}`}, "one character"},
		{map[string]string{"decoder": `{"type": "BPEDecoder", "suffix": ""}`}, "suffix"},
		{map[string]string{"decoder": `{"type": "Sequence", "decoders": [{"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "ab"}, "content": ""}]}`}, "after Fuse"},
		{map[string]string{"added_tokens": `[{"id": 97, "content": "a", "special": true}]`}, "control"},
		{model(`{"type": "Unigram", "vocab": [["a", 0]], "unk_id": 3}`), "unk_id"},
		{model(`{"type": "Unigram", "vocab": [["a", 0]]}`), "unknown token"},
		{model(`{"type": "Unigram", "vocab": [["a"]]}`), "score"},
		{model(`{"type": "Unigram", "vocab": [["a", 1, 2]]}`), "score"},
		{model(`{"type": "WordPiece"}`), "WordPiece"},
		{model(`{"type": "WordLevel"}`), "WordLevel"},
		{model(`{"dropout": 0.1}`), "dropout"},
		{model(`{"vocab": {"a": 0, "b": 0}, "merges": []}`), "same id"},
		{model(`{"vocab": {"a": 0, "b": 70000}, "merges": []}`), "70000"},
		{model(`{"vocab": {"a": -1}, "merges": []}`), "id"},
		{model(`{"vocab": {"a": 99999999999}, "merges": []}`), "id"},
		{model(`{"vocab": {"a": 1.5}, "merges": []}`), "vocab"},
		{model(`{"vocab": {"a": 0, "a": 1}, "merges": []}`), "repeated"},
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
		const prefix = "tokenizer: tokenizer.json: "
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), prefix) {
			t.Errorf("%v: error %v does not say %q", c.patch, err, c.want)
		}
	}
}

// TestNew_IgnoresWhatTheReferenceIgnores: truncation and padding do not apply to training, and unknown fields are
// ignored as in the reference.
func TestNew_IgnoresWhatTheReferenceIgnores(t *testing.T) {
	tok, err := New(patched(t, map[string]json.RawMessage{
		"truncation":   json.RawMessage(`{"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}`),
		"padding":      json.RawMessage(`{"strategy": {"Fixed": 100}, "direction": "Right", "pad_id": 0, "pad_token": "!"}`),
		"decoder":      json.RawMessage(`{"type": "ByteLevel", "new_option": 1}`),
		"added_tokens": json.RawMessage(`[{"id": 7, "content": ""}, {"id": 900, "content": "<x>"}, {"id": 901, "content": "<x>", "special": true}]`),
	}), nil)
	must(t, err)
	want := append(small(t).Encode("the board", true), 533)
	if got := tok.Encode("the board<x>", true); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNew_Config(t *testing.T) {
	file := testdata(t, "tokenizer.json")
	tok, err := New(file, []byte(`{"bos_token": null, "eos_token": {"content": "<|im_end|>", "lstrip": false},
		"chat_template": [{"name": "tool_use", "template": "T"}, {"name": "default", "template": "D"}]}`))
	must(t, err)
	end, _ := tok.TokenID("<|im_end|>")
	if !slices.Equal(tok.EOS(), []int32{end}) || len(tok.BOS()) != 0 {
		t.Errorf("EOS %v, BOS %v", tok.EOS(), tok.BOS())
	}
	if got := tok.ChatTemplates()[DefaultTemplate]; got != "D" {
		t.Errorf("chat template %q", got)
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
	_, err := Load(dir)
	if err == nil || !strings.Contains(err.Error(), "needs tokenizer.json and tokenizer_config.json") {
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
	if tok.VocabSize() != 542 || len(tok.EOS()) != 1 || tok.ChatTemplates()[DefaultTemplate] != "{{ messages }}" {
		t.Errorf("vocabulary %d, EOS %v, chat template %q", tok.VocabSize(), tok.EOS(), tok.ChatTemplates()[DefaultTemplate])
	}
	must(t, os.Remove(filepath.Join(dir, "chat_template.jinja")))
	processor := filepath.Join(dir, "chat_template.json")
	must(t, os.WriteFile(processor, []byte(`{"chat_template": "{{ 1 }}"}`), 0o600))
	tok, err = Load(dir)
	must(t, err)
	if got := tok.ChatTemplates()[DefaultTemplate]; got != "{{ 1 }}" {
		t.Errorf("the template of a processor is %q", got)
	}
	for _, text := range []string{"{", `{"chat_template": 3}`} {
		must(t, os.WriteFile(processor, []byte(text), 0o600))
		if _, err = Load(dir); err == nil || !strings.Contains(err.Error(), "chat_template.json: ") {
			t.Errorf("%s: %v", text, err)
		}
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

func BenchmarkNew(b *testing.B) {
	file := testdata(b, "tokenizer.json")
	for b.Loop() {
		if _, err := New(file, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzNew replaces one section of a valid file, or all of it (part "").
func FuzzNew(f *testing.F) {
	for part, value := range map[string]string{
		"":               `{"version": "1.0", "model": {"vocab": {}, "merges": ["a b"]}}`,
		"added_tokens":   `[{"id": 600, "content": "<x>", "lstrip": true, "rstrip": true, "single_word": true, "normalized": true}]`,
		"normalizer":     `{"type": "Sequence", "normalizers": [{"type": "NFC"}]}`,
		"pre_tokenizer":  `{"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true}, {"type": "ByteLevel"}]}`,
		"post_processor": `{"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}}`,
		"decoder":        `{"type": "ByteLevel"}`,
		"model":          `{"ignore_merges": true, "merges": ["a n", ["t", "h"]]}`,
		"model ":         `{"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5], ["<0x41>", 0]], "byte_fallback": true}`,
	} {
		f.Add(part, []byte(value), []byte(`{"eos_token": "<|im_end|>"}`))
	}
	f.Add("", []byte(`{"model": {"unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5e-7], `+
		`["T", -20.000000000000000000001]]}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, part string, value, config []byte) {
		if part != "" {
			var object map[string]json.RawMessage
			if !json.Valid(value) || strings.TrimSpace(part) == "model" && json.Unmarshal(value, &object) != nil {
				return
			}
			part = strings.TrimSpace(part)
			value = patched(t, map[string]json.RawMessage{part: value})
		}
		tok, err := New(value, config)
		if err != nil {
			return
		}
		exercise(t, tok, "The 1st café\n\n 日本 <x> 😀")
	})
}
