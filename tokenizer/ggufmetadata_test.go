package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// plain returns a list, which may be one of any, as one of its type.
func plain[T any](list any) (out []T) {
	if out, ok := list.([]T); ok {
		return out
	}
	for _, v := range list.([]any) {
		out = append(out, v.(T))
	}
	return out
}

// TestToGGUF_Inverse: files that were made of metadata give it back, with a token for each further embedding.
func TestToGGUF_Inverse(t *testing.T) {
	file, err := os.ReadFile("testdata/tokenizer.json")
	must(t, err)
	for pre := range ggufPatterns {
		meta := ggufOf(t, file, pre)
		tokens := plain[string](meta["tokenizer.ggml.tokens"])
		n := len(tokens)
		meta["tokenizer.ggml.bos_token_id"], meta["tokenizer.ggml.eos_token_id"] = uint32(n-1), uint32(n-2)
		meta["tokenizer.ggml.add_bos_token"] = pre != "qwen2"
		meta["tokenizer.ggml.add_eos_token"] = pre == "tekken"
		meta["tokenizer.chat_template"], meta["tokenizer.chat_template.tool_use"] = "{{ bos_token }}", "tools"
		vocabulary, config, err := ExportGGUF(meta)
		must(t, err)
		got, err := ToGGUF(vocabulary, config, nil, n+2)
		must(t, err)
		name := got["tokenizer.ggml.pre"].(string)
		if have, want := ggufPatterns[name], ggufPatterns[pre]; !slices.Equal(have.patterns, want.patterns) ||
			have.nfc != want.nfc || have.whole != want.whole {
			t.Errorf("%s becomes %s", pre, name)
		}
		want := map[string]any{
			"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": name,
			"tokenizer.ggml.tokens":     append(tokens, fmt.Sprintf("[PAD%d]", n), fmt.Sprintf("[PAD%d]", n+1)),
			"tokenizer.ggml.token_type": got["tokenizer.ggml.token_type"],
			"tokenizer.ggml.merges":     plain[string](meta["tokenizer.ggml.merges"]),
		}
		for _, key := range []string{"ggml.bos_token_id", "ggml.eos_token_id", "ggml.add_bos_token", "ggml.add_eos_token",
			"chat_template", "chat_template.tool_use"} {
			want["tokenizer."+key] = meta["tokenizer."+key]
		}
		if !reflect.DeepEqual(got, want) {
			for key, value := range want {
				if !reflect.DeepEqual(got[key], value) {
					t.Errorf("%s: %s is %.80q, want %.80q", pre, key, fmt.Sprint(got[key]), fmt.Sprint(value))
				}
			}
			t.Errorf("%s: %d keys, want %d", pre, len(got), len(want))
		}
		for i, kind := range got["tokenizer.ggml.token_type"].([]int32) {
			wanted := int32(unusedPiece)
			if i < n {
				wanted = plain[int32](meta["tokenizer.ggml.token_type"])[i]
			}
			if kind != wanted {
				t.Errorf("%s: token %d, %q, is of the type %d, want %d", pre, i, tokens[min(i, n-1)], kind, wanted)
			}
		}
	}
}

// TestToGGUF_Refused: what llama.cpp would cut otherwise is an error.
func TestToGGUF_Refused(t *testing.T) {
	file, err := os.ReadFile("testdata/tokenizer.json")
	must(t, err)
	vocabulary, config, err := ExportGGUF(ggufOf(t, file, "qwen2"))
	must(t, err)
	for want, change := range map[string][2]string{
		"no pre-tokenizer that cuts":   {`\\p{N}|`, `\\p{N}{1,9}|`},
		"none with these options":      {`"Isolated"`, `"Removed"`},
		"only byte-level BPE":          {`"byte_fallback":false`, `"byte_fallback":true`},
		"normalizer \"NFD\"":           {`"NFC"`, `"NFD"`},
		"llama.cpp has no pre-tokeniz": {`"ignore_merges":false`, `"ignore_merges":true`},
	} {
		changed := strings.ReplaceAll(string(vocabulary), change[0], change[1])
		if changed == string(vocabulary) {
			t.Fatalf("%s is not in the file", change[0])
		}
		if _, err := ToGGUF([]byte(changed), config, nil, 1e6); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if _, err := ToGGUF(vocabulary, config, nil, 10); err == nil || !strings.Contains(err.Error(), "10 embeddings") {
		t.Error(err)
	}
}

// TestToGGUF_Pieces: a SentencePiece model gives the ids of its own library through the metadata, with the tokens that
// were added to it.
func TestToGGUF_Pieces(t *testing.T) {
	data := read(t, "testdata/sentencepiece/bpe-bytes.model")
	tok, err := FromSentencePiece(data)
	must(t, err)
	n := tok.VocabSize()
	g := ggufMeta{}
	must(t, g.setPieces(tok, data, n+3))
	must(t, g.setCommon(tok))
	m, err := parseSentencePiece(data)
	must(t, err)
	tokens, scores := g["tokenizer.ggml.tokens"].([]string), g["tokenizer.ggml.scores"].([]float32)
	for i, p := range m.pieces {
		if tokens[i] != p.text || scores[i] != float32(p.score) {
			t.Errorf("%d: %q %v, want %q %v", i, tokens[i], scores[i], p.text, p.score)
		}
	}
	if tokens[n+2] != fmt.Sprintf("[PAD%d]", n+2) || scores[n+2] != -10000 || g["tokenizer.ggml.add_bos_token"] != true {
		t.Errorf("%q %v %v", tokens[n+2], scores[n+2], g["tokenizer.ggml.add_bos_token"])
	}
	back, err := FromGGUF(g)
	must(t, err)
	var cases []spCase
	must(t, json.Unmarshal(read(t, "testdata/sentencepiece/bpe-bytes.json"), &cases))
	for _, c := range cases {
		if got := back.EncodeOrdinary(c.Text); !slices.Equal(got, c.IDs) {
			t.Fatalf("%+q: %v, want %v", c.Text, got, c.IDs)
		}
	}
	unigram := read(t, "testdata/sentencepiece/unigram-plain.model")
	if err := (ggufMeta{}).setPieces(tok, unigram, 1e6); err == nil || !strings.Contains(err.Error(), "Unigram") {
		t.Error(err)
	}
}
