package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/dev/gguftest"
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

// messages writes a file of messages.
func messages(t *testing.T, text string) string { return file(t, t.TempDir(), "chat.json", text) }

func TestExport_Errors(t *testing.T) {
	full, empty := t.TempDir(), t.TempDir()
	file(t, full, "a", "b")
	for want, args := range map[string][]string{
		"want MODEL and FOLDER": {"tiny"},
		"--dtype int8: want":    {"--dtype", "int8", "tiny", empty},
		"change the policy":     {"--dtype", "q4_k_m", "tiny", empty},
		"--shard of 0":          {"--shard", "-1", "tiny", empty},
		"is not empty":          {"tiny", full},
		"neither a folder":      {"nowhere", empty},
		"adapter_config.json":   {"--adapter", full, "tiny", empty},
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
