package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const tokenizerFile = "../../tokenizer/testdata/tokenizer.json"

func TestTokenize_JSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("the board<|im_end|>"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"debug", "tokenize", "--json", tokenizerFile, "the", "board<|im_end|>"},
		{"debug", "tokenize", "--json", "--file", file, tokenizerFile},
		{"debug", "tokenize", "--json", filepath.Dir(tokenizerFile), "the board<|im_end|>"},
		{"debug", "tokenize", "--json", "testdata/vocabulary.gguf", "the board<|im_end|>"},
	} {
		var out, stderr strings.Builder
		if status := runCommand(args, &out, &stderr); status != 0 {
			t.Fatalf("%v: status %d, %s", args, status, stderr.String())
		}
		var got struct {
			IDs    []int32
			Tokens []struct {
				ID         int32
				Token      string
				Start, End int
			}
		}
		if err := json.Unmarshal([]byte(out.String()), &got); err != nil {
			t.Fatal(err)
		}
		last := got.Tokens[len(got.Tokens)-1]
		if len(got.IDs) != len(got.Tokens) || last.Token != "<|im_end|>" || last.Start != 9 || last.End != 19 ||
			last.ID != 535 {
			t.Errorf("%v: %s", args, out.String())
		}
	}
}

func TestTokenize_Table(t *testing.T) {
	for model, want := range map[string]string{
		tokenizerFile: `"Ġboard"`,
		"../../tokenizer/testdata/sentencepiece/bpe-bytes.model": `"▁board"`,
		"o200k_base": "2 tokens, 9 bytes",
		"tiny":       "9 bytes",
	} {
		var out, stderr strings.Builder
		if status := runCommand([]string{"debug", "tokenize", model, "the board"}, &out, &stderr); status != 0 ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%s: status %d, %s%s", model, status, out.String(), stderr.String())
		}
	}
}

func TestTokenize_Ordinary(t *testing.T) {
	var out, stderr strings.Builder
	runCommand([]string{"debug", "tokenize", "--ordinary", tokenizerFile, "<|im_end|>"}, &out, &stderr)
	if strings.Contains(out.String(), "535") || !strings.Contains(out.String(), "tokens, 10 bytes") {
		t.Errorf("%s%s", out.String(), stderr.String())
	}
}

func TestTokenize_Mistakes(t *testing.T) {
	t.Setenv("HF_HOME", t.TempDir())
	cut := file(t, t.TempDir(), "cut.gguf", "GGUF\x03\x00\x00\x00")
	for want, args := range map[string][]string{
		"name a model":   {},
		"exclude":        {"--special", "--ordinary", tokenizerFile, "a"},
		"not both":       {"--file", "x", tokenizerFile, "a"},
		"or an encoding": {"no-such-model", "a"},
		"art model pull": {"no-such/model", "a"},
		"truncated":      {cut, "a"},
		"expected":       {"--file", "", "../../go.mod", "a"},
		"no such file":   {"--file", "no-such-file", tokenizerFile},
	} {
		var out, stderr strings.Builder
		status := runCommand(append([]string{"debug", "tokenize"}, args...), &out, &stderr)
		if status == 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%v: status %d, %q does not say %q", args, status, stderr.String(), want)
		}
	}
}
