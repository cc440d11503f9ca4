package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/gguf"
)

// qwenFolder returns the folder of the built-in model with a pre-tokenizer that llama.cpp has.
func qwenFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../model/tiny")); err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	path := filepath.Join(dir, "tokenizer.json")
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &file)
	}
	if err != nil {
		t.Fatal(err)
	}
	const qwen = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` +
		`|\s*[\r\n]+|\s+(?!\S)|\s+`
	split := file["pre_tokenizer"].(map[string]any)["pretokenizers"].([]any)[0].(map[string]any)
	split["pattern"], file["normalizer"] = map[string]any{"Regex": qwen}, map[string]any{"type": "NFC"}
	if content, err = json.Marshal(file); err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestQuantize: a quantized model is nearly the same, has its tokenizer and its template, and may be quantized again.
func TestQuantize(t *testing.T) {
	folder, dir := qwenFolder(t), t.TempDir()
	const ids = "760,268,449,415,32,50,43,50,63,761"
	want := output[scored](t, "debug", "score", "--json", "--ids", ids, folder)
	text := messages(t, `[{"role": "user", "content": "Hi, 12 boards aren't 3."}]`)
	prompt := output[rendered](t, "debug", "render", "--json", folder, text)
	for kind, near := range map[string]float32{"Q8_0": 0.1, "Q6_K": 0.3, "Q4_K_M": 3, "Q4_0": 3} {
		path := filepath.Join(dir, kind+".gguf")
		out := output[quantizedFile](t, "model", "quantize", "--json", "--type", kind, folder, path)
		info, err := os.Stat(path)
		if err != nil || out.File != path || out.Bytes != info.Size() || out.Type != kind || out.Tensors["F32"] != 17 {
			t.Errorf("%s: %+v, %v", kind, out, err)
		}
		got := output[scored](t, "debug", "score", "--json", "--ids", ids, path)
		same := true
		for i := range want.Logprobs[1:] {
			d := *got.Logprobs[i+1] - *want.Logprobs[i+1]
			same = same && d == 0
			if d > near || -d > near {
				t.Errorf("%s: logprob %d differs by %v", kind, i+1, d)
			}
		}
		if same {
			t.Errorf("%s: nothing was rounded", kind)
		}
		again := output[rendered](t, "debug", "render", "--json", path, text)
		if again.Text != prompt.Text || !slices.Equal(again.IDs, prompt.IDs) {
			t.Errorf("%s: %+v, want %+v", kind, again, prompt)
		}
	}
	path, from := filepath.Join(dir, "again.gguf"), filepath.Join(dir, "Q8_0.gguf")
	status, stdout, stderr := command("model", "quantize", "--type", "Q4_0", from, path)
	if status != 0 || !strings.Contains(stdout, path) || strings.Count(stderr, "is quantized already, as Q8_0 of") != 1 {
		t.Errorf("%d: %s%s", status, stdout, stderr)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	status, _, stderr = command("model", "quantize", folder, path)
	if status == 0 || !strings.Contains(stderr, "--overwrite") {
		t.Errorf("%d: %s", status, stderr)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("it was replaced without a word: %v", err)
	}
	if out := output[quantizedFile](t, "model", "quantize", "--json", "--overwrite", folder, path); out.Type != "Q4_K_M" {
		t.Errorf("%+v", out)
	}
}

// TestQuantize_Errors: nothing is left behind.
func TestQuantize_Errors(t *testing.T) {
	empty, dir := t.TempDir(), t.TempDir()
	out := filepath.Join(empty, "out.gguf")
	for want, args := range map[string][]string{
		"want MODEL and FILE": {"tiny"},
		"--type Q4_0":         {"--type", "Q3_K", "tiny", out},
		"no pre-tokenizer":    {"tiny", out},
		"is a folder":         {qwenFolder(t), dir},
		"neither a folder":    {"nowhere", out},
		"merge it first":      {tinyAdapter(t, true), out},
		"no such file":        {qwenFolder(t), filepath.Join(empty, "none", "out.gguf")},
	} {
		status, stdout, stderr := command(append([]string{"model", "quantize"}, args...)...)
		if status == 0 || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%v: %d, %q does not say %q", args, status, stderr, want)
		}
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
		t.Errorf("something was written: %v, %v", entries, err)
	}
}

// TestQuantize_LlamaCpp: all tensors of ART_QUANTIZE_MODEL, a GGUF file, have the types and the bits that
// llama-quantize gives them, whose path is ART_LLAMA_QUANTIZE. See docs/log/2026-11.md.
func TestQuantize_LlamaCpp(t *testing.T) {
	program, file := os.Getenv("ART_LLAMA_QUANTIZE"), os.Getenv("ART_QUANTIZE_MODEL")
	if program == "" || file == "" {
		t.Skip("ART_LLAMA_QUANTIZE and ART_QUANTIZE_MODEL are not set")
	}
	for _, kind := range []string{"Q8_0", "Q4_0", "Q6_K", "Q4_K_M"} {
		own, theirs := filepath.Join(t.TempDir(), "own.gguf"), filepath.Join(t.TempDir(), "theirs.gguf")
		if status, _, stderr := command("model", "quantize", "--type", kind, file, own); status != 0 {
			t.Fatal(stderr)
		}
		if out, err := exec.CommandContext(t.Context(), program, "--allow-requantize", file, theirs,
			kind).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		a, err := gguf.Open(own)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		b, err := gguf.Open(theirs)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for _, name := range b.Names() {
			want, _ := b.Tensor(name)
			if got, _ := a.Tensor(name); got.Type != want.Type || !bytes.Equal(got.Data, want.Data) {
				t.Errorf("%s: %s is %v, want %v, or its bits differ", kind, name, got.Type, want.Type)
			}
		}
		if len(a.Names()) != len(b.Names()) {
			t.Errorf("%s: %d tensors, want %d", kind, len(a.Names()), len(b.Names()))
		}
	}
}
