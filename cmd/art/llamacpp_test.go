package main

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/dev/gguftest"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// llamaCpp runs lora.py.
func llamaCpp(t *testing.T, request, out any) {
	t.Helper()
	python := os.Getenv("ART_LLAMACPP_PYTHON")
	if python == "" {
		t.Skip("ART_LLAMACPP_PYTHON is not set")
	}
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "../../internal/dev/conformance/llamacpp/lora.py")
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(text)), &stderr
	answer, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(answer, out)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
}

// untiedTiny is the built-in model with a head of its own, in Q8_0.
func untiedTiny(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range tinyFolder(t) {
		file(t, dir, name, string(content))
	}
	w, err := model.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := *w.Config
	c.TieEmbeddings = false
	head := w.Tensors[0]
	head.Name = "lm_head.weight"
	untied := model.Weights{Config: &c, Tensors: append(w.Tensors, head)}
	if err := untied.Save(dir); err != nil {
		t.Fatal(err)
	}
	return gguftest.Quantized(t, dir)
}

// randomAdapter writes an adapter of all layers that a GGUF one may have, whose effect is size.
func randomAdapter(t *testing.T, path string, size float32) string {
	t.Helper()
	base, err := basemodel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := base.Close(); err != nil {
			t.Error(err)
		}
	}()
	layers := base.Config.Adaptable()
	if base.Config.TieEmbeddings {
		layers = base.Config.Linears()
	}
	cfg := lora.Config{Rank: 4, Alpha: 8, RankStabilized: true, Ranks: map[string]int{"down_proj": 2},
		Alphas: map[string]float64{"v_proj": 3}}
	var shapes []lora.LayerShape
	for _, l := range layers {
		shapes = append(shapes, lora.LayerShape(l))
		if last := l.Name[strings.LastIndexByte(l.Name, '.')+1:]; !slices.Contains(cfg.Targets, last) {
			cfg.Targets = append(cfg.Targets, last)
		}
	}
	a, err := lora.New(cfg, shapes, 1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, l := range a.Layers() {
		x := l.B
		if l.Embedding {
			x = l.A
		}
		for i := range x {
			x[i] = size * float32(rng.NormFloat64())
		}
	}
	dir := t.TempDir()
	if err := a.Save(dir, path); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestExport_LlamaCpp: llama.cpp adds an exported adapter to a GGUF file in float32 and replies as this library does on
// a file of the same numbers. How many tokens are equal where llama.cpp rounds activations is printed.
//
//	ART_LLAMACPP_PYTHON=python go test ./cmd/art -run TestExport_LlamaCpp -v
//
// with a Python that has the packages of internal/dev/conformance/llamacpp/requirements.txt.
func TestExport_LlamaCpp(t *testing.T) {
	var smol string
	llamaCpp(t, map[string]any{"model": "smollm2"}, &smol)
	for name, c := range map[string]struct {
		path  string
		size  float32
		texts []string
	}{
		"SmolLM2-135M-Instruct Q4_1": {smol, 0.03, []string{"The capital of France is", "Once upon a time", "def add(a, b):",
			"Water boils when"}},
		"untied tiny model Q8_0": {untiedTiny(t), 0.03, []string{"What is", "The board", "yes or no"}},
	} {
		adapter, file := randomAdapter(t, c.path, c.size), filepath.Join(t.TempDir(), "adapter.gguf")
		output[exported](t, "model", "export", "--json", "--format", "gguf", "--adapter", adapter, c.path, file)
		type reply struct {
			Prompt []int32 `json:"prompt"`
			Reply  []int32 `json:"reply"`
		}
		var ours []reply
		changed := 0
		var plain [][]int32
		for _, text := range c.texts {
			args := []string{"debug", "generate", "--json", "--max-tokens", "32"}
			with := output[generated](t, append(args, "--adapter", adapter, c.path, text)...)
			without := output[generated](t, append(args, c.path, text)...)
			ours, plain = append(ours, reply{with.PromptIDs, with.IDs}), append(plain, without.IDs)
			if !slices.Equal(with.IDs, without.IDs) {
				changed++
			}
		}
		if changed == 0 {
			t.Errorf("%s: the adapter changes nothing", name)
		}
		var theirs struct{ Float32, Base, Stored, Forced [][]int32 }
		llamaCpp(t, map[string]any{"model": c.path, "adapter": file, "cases": ours}, &theirs)
		free, forced, all := 0, 0, 0
		for i, want := range ours {
			if got := theirs.Float32[i]; !slices.Equal(got, want.Reply) {
				t.Errorf("%s, %q: llama.cpp in float32 replies %v, want %v", name, c.texts[i], got, want.Reply)
			}
			n := min(len(plain[i]), len(theirs.Base[i]))
			if got := theirs.Base[i][:n]; !slices.Equal(got, plain[i][:n]) {
				t.Errorf("%s, %q: llama.cpp without an adapter replies %v, want %v", name, c.texts[i], got, plain[i])
			}
			free += equals(theirs.Stored[i], want.Reply)
			forced += equals(theirs.Forced[i], want.Reply)
			all += len(want.Reply)
		}
		t.Logf("%s: on the file as it is %d of %d tokens are equal, and %d after the same tokens", name, free, all, forced)
	}
}

// equals counts places at which two lists have the same id.
func equals(a, b []int32) (n int) {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}
