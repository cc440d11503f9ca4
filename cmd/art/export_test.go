package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/dev/gguftest"
	"github.com/goart-dev/art/internal/ggml"
	"github.com/goart-dev/art/internal/gguf"
	"github.com/goart-dev/art/lora"
)

// TestExport: an exported model generates the same text as its source, with a merged adapter, in one file and in
// shards.
func TestExport(t *testing.T) {
	adapter, file := tinyAdapter(t, true), gguftest.Folder(t, "../../model/tiny")
	const ids = "760,268,449,415,32,50,43,50,63,761"
	for _, c := range []struct {
		model string
		flags []string
		near  float64
	}{
		{"tiny", nil, 0},
		{"../../model/tiny", []string{"--shard", "200000"}, 0},
		{file, nil, 0},
		{"tiny", []string{"--adapter", adapter}, 1e-4},
		{file, []string{"--adapter", adapter, "--shard", "200000"}, 1e-4},
		{"tiny", []string{"--dtype", "bfloat16"}, 0.2},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		out := output[exported](t, slices.Concat([]string{"model", "export", "--json"}, c.flags, []string{c.model, dir})...)
		names := fmt.Sprint(out.Files)
		if out.Folder != dir || !strings.Contains(names, "tokenizer.json") ||
			strings.Contains(names, "index") != slices.Contains(c.flags, "--shard") {
			t.Errorf("%v: %s", c, names)
		}
		score := []string{"debug", "score", "--json", "--ids", ids}
		got := output[scored](t, append(score, dir)...)
		if slices.Contains(c.flags, "--adapter") {
			score = append(score, "--adapter", adapter)
		}
		want := output[scored](t, append(score, c.model)...)
		for i := range want.Logprobs[1:] {
			if d := *got.Logprobs[i+1] - *want.Logprobs[i+1]; d > float32(c.near) || -d > float32(c.near) {
				t.Errorf("%v: logprob %d differs by %v", c, i+1, d)
			}
		}
		if r := output[rendered](t, "debug", "render", "--json", dir,
			messages(t,
				`[{"role": "user", "content": "Hi"}]`)); r.Text != "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n" {
			t.Errorf("%v: %q", c, r.Text)
		}
	}
}

// TestExport_Adapters: an adapter for PEFT is the one that it was made of, and one for llama.cpp is a GGUF file, in
// half the bytes with float16, and not left behind where it cannot be written.
func TestExport_Adapters(t *testing.T) {
	adapter, file := tinyAdapter(t, true), gguftest.Folder(t, "../../model/tiny")
	dir := t.TempDir()
	export := func(args ...string) exported {
		return output[exported](t, append([]string{"model", "export", "--json", "--adapter", adapter}, args...)...)
	}
	peft := export("--format", "peft", file, filepath.Join(dir, "peft"))
	want, err := lora.Load(adapter)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := lora.Load(peft.Folder); err != nil || !reflect.DeepEqual(got.Layers(), want.Layers()) ||
		len(peft.Files) != 2 {
		t.Errorf("%v %v", peft, err)
	}
	one := export("--format", "gguf", "tiny", filepath.Join(dir, "one.gguf"))
	two := export("--format", "gguf", "--dtype", "float16", file, filepath.Join(dir, "two.gguf"))
	if one.Folder != dir || one.Files[0].Name != "one.gguf" || two.Files[0].Bytes >= one.Files[0].Bytes*3/4 {
		t.Errorf("%v %v", one, two)
	}
	for name, kind := range map[string]ggml.Type{"one.gguf": ggml.F32, "two.gguf": ggml.F16} {
		f, err := gguf.Open(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		x, ok := f.Tensor("blk.0.ffn_down.weight.lora_b")
		arch, _ := f.Value("general.architecture")
		if !ok || x.Type != kind || arch != "qwen3" || len(f.Names()) != 2*len(want.Layers()) {
			t.Errorf("%s: %v %v of %v", name, arch, x, f.Names())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	last := len(want.Layers()) - 1
	want.Layers()[last].B[0] = 1e6
	if err := want.Save(adapter, "tiny"); err != nil {
		t.Fatal(err)
	}
	lost := filepath.Join(dir, "three.gguf")
	if status, _, stderr := command("model", "export", "--format", "gguf", "--dtype", "float16", "--adapter", adapter,
		"tiny", lost); status != 1 || !strings.Contains(stderr, "1e+06, which is too large for F16") || exists(lost) {
		t.Errorf("%d %s", status, stderr)
	}
}

// messages writes a file of messages.
func messages(t *testing.T, text string) string { return file(t, t.TempDir(), "chat.json", text) }

func TestExport_Errors(t *testing.T) {
	full, empty := t.TempDir(), t.TempDir()
	file(t, full, "a", "b")
	for want, args := range map[string][]string{
		"want MODEL and FOLDER":                          {"tiny"},
		"--format model, peft ":                          {"--format", "onnx", "tiny", empty},
		"--dtype int8: want float32 or bfloat16":         {"--dtype", "int8", "tiny", empty},
		"change the policy":                              {"--dtype", "q4_k_m", "tiny", empty},
		"--dtype float16: want float32":                  {"--format", "peft", "--dtype", "float16", "tiny", empty},
		"--dtype bfloat16: want float32 or float16":      {"--format", "gguf", "--dtype", "bfloat16", "tiny", empty},
		"--shard 7: an adapter is one file":              {"--format", "gguf", "--shard", "7", "tiny", empty},
		"--format gguf: tiny has no adapter; name a run": {"--format", "gguf", "tiny", empty},
		"exists":              {"--format", "gguf", "--adapter", tinyAdapter(t, true), "tiny", filepath.Join(full, "a")},
		"--shard of 0":        {"--shard", "-1", "tiny", empty},
		"is not empty":        {"tiny", full},
		"neither a folder":    {"nowhere", empty},
		"adapter_config.json": {"--adapter", full, "tiny", empty},
	} {
		if status, stdout, stderr := command(append([]string{"model", "export"}, args...)...); status == 0 || stdout != "" ||
			!strings.Contains(stderr, want) {
			t.Errorf("%v: %d, %q does not say %q", args, status, stderr, want)
		}
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) > 0 {
		t.Errorf("something was written: %v, %v", entries, err)
	}
}
