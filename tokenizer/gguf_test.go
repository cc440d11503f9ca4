package tokenizer

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ggufOf converts a byte-level tokenizer.json to the metadata of a GGUF file.
func ggufOf(t testing.TB, file []byte, pre string) map[string]any {
	t.Helper()
	members, err := object(string(file))
	must(t, err)
	m, err := parseModel(members["model"], true)
	must(t, err)
	var added []addedToken
	must(t, json.Unmarshal(member(members, "added_tokens"), &added))
	texts := map[int32]string{}
	for text, id := range m.vocab {
		texts[id] = text
	}
	kinds := map[int32]pieceKind{}
	for _, a := range added {
		texts[a.ID], kinds[a.ID] = a.Content, userPiece
		if a.Special {
			kinds[a.ID] = controlPiece
		}
	}
	tokens, types, merges := make([]any, len(texts)), make([]int32, len(texts)), []string{}
	for id := range tokens {
		tokens[id], types[id] = texts[int32(id)], int32(max(kinds[int32(id)], normalPiece))
	}
	for i, left := range m.left {
		merges = append(merges, left+" "+m.right[i])
	}
	return map[string]any{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre, "tokenizer.ggml.tokens": tokens,
		"tokenizer.ggml.token_type": types, "tokenizer.ggml.merges": merges, "tokenizer.chat_template": "T"}
}

// ggufOfSP converts a SentencePiece model to the metadata of a GGUF file.
func ggufOfSP(t testing.TB, data []byte) map[string]any {
	t.Helper()
	m, err := parseSentencePiece(data)
	must(t, err)
	model := map[bool]string{true: "llama", false: "t5"}[m.bpe]
	var tokens []string
	var scores []float32
	var types []int32
	for i, p := range m.pieces {
		tokens, scores, types = append(tokens, p.text), append(scores, float32(p.score)), append(types, int32(m.kinds[i]))
	}
	return map[string]any{"tokenizer.ggml.model": model, "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.scores": scores,
		"tokenizer.ggml.token_type": types, "tokenizer.ggml.add_space_prefix": m.normalizer.dummyPrefix,
		"tokenizer.ggml.remove_extra_whitespaces": m.normalizer.trim, "tokenizer.ggml.bos_token_id": uint32(1)}
}

// TestFromGGUF: the ids are those of the same vocabulary in the other formats.
func TestFromGGUF(t *testing.T) {
	file := testdata(t, "tokenizer.json")
	tok, err := FromGGUF(ggufOf(t, file, "qwen2"))
	must(t, err)
	rng := seeded(t)
	want, err := New(patched(t, map[string]json.RawMessage{"normalizer": json.RawMessage(`{"type": "NFC"}`)}), nil)
	must(t, err)
	for range 1000 {
		s := randomText(rng)
		if got, want := tok.Encode(s, true), want.Encode(s, true); !slices.Equal(got, want) {
			t.Fatalf("%+q: %v from GGUF, %v from JSON", s, got, want)
		}
	}
	if tok.ChatTemplates()[DefaultTemplate] != "T" {
		t.Errorf("chat template %q", tok.ChatTemplates()[DefaultTemplate])
	}
	checkGGUFOfSP(t, "testdata/sentencepiece")
}

// TestReference_GGUF does the same with released vocabularies.
func TestReference_GGUF(t *testing.T) {
	dir := os.Getenv("ART_TOKENIZER_DIR")
	if dir == "" {
		t.Skip("set ART_TOKENIZER_DIR; see TestReference")
	}
	for name, pre := range map[string]string{
		"qwen3": "qwen2", "qwen2_5": "qwen2", "llama3_1": "llama-bpe", "gpt2": "gpt-2", "mistral_nemo": "tekken",
		"deepseek_v3": "deepseek-v3", "gptoss": "gpt-4o", "command_r_plus": "command-r",
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := FromGGUF(ggufOf(t, read(t, filepath.Join(dir, name, "tokenizer.json")), pre))
			must(t, err)
			var recorded struct{ Cases []referenceCase }
			must(t, json.Unmarshal(read(t, filepath.Join(dir, name, "cases.json")), &recorded))
			wrong := 0
			for _, c := range recorded.Cases {
				if got := tok.Encode(c.Text, false); !slices.Equal(got, c.IDs) {
					if wrong++; wrong <= maxShown {
						t.Errorf("%+q:\n got %v\nwant %v", c.Text, got, c.IDs)
					}
				}
			}
			t.Logf("%d texts, %d wrong", len(recorded.Cases), wrong)
		})
	}
	checkGGUFOfSP(t, filepath.Join(dir, "sentencepiece"))
}

// tiedModels are the models that make_sentencepiece.py makes to test rounding.
var tiedModels = []string{"unigram-ties.model", "unigram-large.model"}

// TestFromGGUF_AddsInFloat64: the sum of "a" and "b" is above the score of "ab", but not once it is rounded to float32.
// llama.cpp and Hugging Face's library add in float64, too; SentencePiece's own, which rounds, finds "ab".
func TestFromGGUF_AddsInFloat64(t *testing.T) {
	below := math.Nextafter32(-1, -2)
	tok, err := FromGGUF(map[string]any{
		"tokenizer.ggml.model":            "t5",
		"tokenizer.ggml.tokens":           []string{"<unk>", "a", "b", "ab"},
		"tokenizer.ggml.scores":           []float32{0, -1, -1e-7, below},
		"tokenizer.ggml.token_type":       []int32{2, 1, 1, 1},
		"tokenizer.ggml.add_space_prefix": false,
	})
	must(t, err)
	if got := tok.EncodeOrdinary("ab"); !slices.Equal(got, []int32{1, 2}) {
		t.Errorf("ids %v, want 1 and 2", got)
	}
}

// checkGGUFOfSP compares with FromSentencePiece, for models without a table of replacements, and without ties that only
// the rounding of SentencePiece's sums breaks.
func checkGGUFOfSP(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.model"))
	must(t, err)
	for _, file := range files {
		data := read(t, file)
		m, err := parseSentencePiece(data)
		if err != nil || m.normalizer.chars != nil || slices.Contains(tiedModels, filepath.Base(file)) {
			continue
		}
		tok, err := FromGGUF(ggufOfSP(t, data))
		must(t, err)
		var cases []spCase
		must(t, json.Unmarshal(read(t, strings.TrimSuffix(file, ".model")+".json"), &cases))
		for _, c := range cases {
			if got := tok.EncodeOrdinary(c.Text); !slices.Equal(got, c.IDs) {
				t.Fatalf("%s: %+q:\n got %v\nwant %v", file, c.Text, got, c.IDs)
			}
		}
		t.Logf("%s: %d texts", filepath.Base(file), len(cases))
	}
}

func TestFromGGUF_NamesWhatIsWrong(t *testing.T) {
	for want, patch := range map[string]map[string]any{
		`"rwkv"`:       {"tokenizer.ggml.model": "rwkv"},
		`"unheard-of"`: {"tokenizer.ggml.pre": "unheard-of"},
		"0 tokens":     {"tokenizer.ggml.tokens": []string{}},
		"holds a int":  {"tokenizer.ggml.tokens": []any{1}},
		"is a string":  {"tokenizer.ggml.merges": "a b"},
		"two parts":    {"tokenizer.ggml.merges": []string{"ab"}},
		"token_type":   {"tokenizer.ggml.token_type": []int32{1}},
		"scores":       {"tokenizer.ggml.model": "llama"},
	} {
		meta := ggufOf(t, testdata(t, "tokenizer.json"), "qwen2")
		for k, v := range patch {
			meta[k] = v
		}
		if _, err := FromGGUF(meta); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v does not say %q", patch, err, want)
		}
	}
}

// FuzzFromGGUF: any metadata is an error, or gives a tokenizer that encodes and decodes. The tokens are the lines of a
// text.
func FuzzFromGGUF(f *testing.F) {
	f.Add("gpt2", "qwen2", "a\nb\nab\n<s>", "a b", []byte{1, 1, 1, 3}, []byte{}, "ab <s>")
	f.Add("llama", "", "<unk>\n<s>\n▁\na\n▁a\n<0x41>", "", []byte{2, 3, 1, 1, 1, 6}, []byte{}, "a A")
	f.Add("t5", "", "<unk>\n</s>\n▁\na\n▁a", "", []byte{2, 3, 1, 1, 4}, []byte{4, 0, 0, 0, 0, 0, 0, 0, 0}, "a A")
	f.Fuzz(func(t *testing.T, model, pre, tokens, merges string, kinds, chars []byte, text string) {
		if len(text) > 1000 || len(tokens) > 10000 {
			return
		}
		lines := strings.Split(tokens, "\n")
		types, scores := make([]int32, len(lines)), make([]float32, len(lines))
		for i := range lines {
			types[i] = 1
			if i < len(kinds) {
				types[i] = int32(kinds[i])
				scores[i] = -float32(kinds[i])
			}
		}
		tok, err := FromGGUF(map[string]any{
			"tokenizer.ggml.model": model, "tokenizer.ggml.pre": pre, "tokenizer.ggml.tokens": lines,
			"tokenizer.ggml.merges": strings.Split(merges, "\n"), "tokenizer.ggml.token_type": types,
			"tokenizer.ggml.scores": scores, "tokenizer.ggml.precompiled_charsmap": chars,
			"tokenizer.ggml.bos_token_id": uint32(1),
		})
		if err == nil {
			exercise(t, tok, text)
		}
	})
}

// TestExportGGUF: the exported files give the same tokenizer as the metadata.
func TestExportGGUF(t *testing.T) {
	file, err := os.ReadFile("testdata/tokenizer.json")
	must(t, err)
	texts := []string{
		"", "the board is 12345 x", "I'll <|im_end|>\n\n  it's\tÄpfel 😀 e\u0301", "<|im_start|>user\na<|im_end|>",
	}
	for pre := range ggufPatterns {
		meta := ggufOf(t, file, pre)
		n := len(meta["tokenizer.ggml.tokens"].([]any))
		meta["tokenizer.ggml.bos_token_id"], meta["tokenizer.ggml.eos_token_id"] = uint32(n-1), uint32(n-2)
		meta["tokenizer.chat_template"] = "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
		for _, named := range []bool{false, true} {
			if named {
				meta["tokenizer.chat_template.tool_use"] = "tools"
				meta["tokenizer.ggml.add_eos_token"] = true
			}
			want, err := FromGGUF(meta)
			must(t, err)
			vocabulary, config, err := ExportGGUF(meta)
			must(t, err)
			got, err := New(vocabulary, config)
			must(t, err)
			for _, text := range texts {
				for _, special := range []bool{false, true} {
					a, b := want.Encode(text, special), got.Encode(text, special)
					if !slices.Equal(a, b) || want.Decode(a, false) != got.Decode(b, false) {
						t.Errorf("%s: %q: %v, want %v", pre, text, b, a)
					}
				}
			}
			if !slices.Equal(want.EOS(), got.EOS()) || !slices.Equal(want.BOS(), got.BOS()) {
				t.Errorf("%s: BOS %v, EOS %v", pre, got.BOS(), got.EOS())
			}
			if want.VocabSize() != got.VocabSize() {
				t.Errorf("%s: %d ids, want %d", pre, got.VocabSize(), want.VocabSize())
			}
			if !maps.Equal(got.ChatTemplates(), want.ChatTemplates()) {
				t.Errorf("%s: templates %v", pre, got.ChatTemplates())
			}
		}
	}
}

// TestExportGGUF_Errors: metadata that cannot be exported is an error that says so.
func TestExportGGUF_Errors(t *testing.T) {
	file, err := os.ReadFile("testdata/tokenizer.json")
	must(t, err)
	prefixed := ggufOf(t, file, "gpt-2")
	prefixed["tokenizer.ggml.add_space_prefix"] = true
	model, err := os.ReadFile("testdata/sentencepiece/bpe-bytes.model")
	must(t, err)
	for want, meta := range map[string]map[string]any{
		"use the files of the original model": ggufOfSP(t, model),
		"without a prefix":                    prefixed,
		"has 0 tokens":                        {},
	} {
		if _, _, err := ExportGGUF(meta); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
