package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// checkpointCase is what check.py compares.
type checkpointCase struct {
	Name     string              `json:"name"`
	Folder   string              `json:"folder"`
	Adapter  bool                `json:"adapter"`
	Messages []map[string]string `json:"messages"`
	Prompt   []int32             `json:"prompt"`
	Reply    []int32             `json:"reply"`
	Logprobs []float32           `json:"logprobs"`
}

// checkpointModels are the kinds of what is trained, by name.
func checkpointModels(base string) map[string]art.ModelOptions {
	ends := append(lora.DefaultTargets(), "embed_tokens", "lm_head")
	models := map[string]art.ModelOptions{
		"lora": {},
		"rslora, patterns": {LoRA: art.LoRA{Rank: 6, RankStabilized: true, Targets: ends,
			Ranks: map[string]int{"down_proj": 3}, Alphas: map[string]float64{`layers\.1\..*q_proj`: 5}}},
		"regular expression": {LoRA: art.LoRA{Rank: 4, TargetPattern: `.*layers\.1\..*(q|up)_proj`}},
		"dora":               {LoRA: art.LoRA{Rank: 4, DoRA: true}},
		"dora, ends": {LoRA: art.LoRA{Rank: 4, DoRA: true, Targets: ends, RankStabilized: true,
			Ranks: map[string]int{"v_proj": 2}}},
		"full": {Full: true},
	}
	for name, opts := range models {
		opts.Base, opts.Seed = base, 4
		models[name] = opts
	}
	return models
}

// filledBase is the built-in model with small numbers in place of rows of zeros: PEFT divides by their length in DoRA.
func filledBase(t *testing.T) string {
	t.Helper()
	const tiny = "../../model/tiny"
	w, err := model.Load(tiny)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(4, 5))
	for i := range w.Tensors {
		if x := &w.Tensors[i]; len(x.Shape) == 2 {
			for row := range slices.Chunk(x.Data, x.Shape[1]) {
				if slices.ContainsFunc(row, func(v float32) bool { return v != 0 }) {
					continue
				}
				for j := range row {
					row[j] = 0.01 * float32(rng.NormFloat64())
				}
			}
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		content, err := os.ReadFile(filepath.Join(tiny, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o644))
	}
	require.NoError(t, w.Save(dir))
	return dir
}

// TestCheckpoints_Python: PEFT and transformers load each kind of checkpoint, with nothing missing and nothing unknown,
// and compute the logprobs that the sampler does; merged adapters too.
//
//	ART_PYTHON=python go test ./backend/local -run TestCheckpoints_Python
//
// with a Python that has the packages of internal/dev/conformance/checkpoints/requirements.txt.
func TestCheckpoints_Python(t *testing.T) {
	python := os.Getenv("ART_PYTHON")
	if python == "" {
		t.Skip("ART_PYTHON is not set")
	}
	base := filledBase(t)
	b := open(t, t.TempDir())
	var cases []checkpointCase
	for name, opts := range checkpointModels(base) {
		m := art.NewModel(fmt.Sprintf("m%d", len(cases)), &opts)
		require.NoError(t, m.Register(t.Context(), b))
		for range 2 {
			_, err := m.TrainSFT(t.Context(), conversationOf("7+5=", "no no"), &art.SFTConfig{Epochs: 8})
			require.NoError(t, err)
		}
		run, err := b.Dir(m)
		require.NoError(t, err)
		c := checkpointCase{Name: name, Folder: filepath.Join(run, "checkpoints", "0002"), Adapter: !opts.Full}
		c.Messages = []map[string]string{{"role": "user", "content": "What is 31-12?"}}
		reply, err := m.Force(t.Context(), art.NewTrajectory(art.User("What is 31-12?")), art.Assistant("19 no yes"), nil)
		require.NoError(t, err)
		c.Prompt, c.Reply, c.Logprobs = reply.Sample.PromptIDs, reply.Sample.IDs, reply.Sample.Logprobs
		cases = append(cases, c)
		if name == "dora" || name == "regular expression" {
			c.Name, c.Folder, c.Adapter = name+", merged", filepath.Join(t.TempDir(), "merged"), false
			require.NoError(t, b.Export(t.Context(), m, c.Folder, nil))
			cases = append(cases, c)
		}
	}
	request, err := json.Marshal(map[string]any{"base": base, "cases": cases})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), python, "-W", "ignore", "../../internal/dev/conformance/checkpoints/check.py")
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	checked := 0
	for line := range strings.Lines(string(out)) {
		var result struct {
			Name       string
			Gap, Moved float64
		}
		require.NoError(t, json.Unmarshal([]byte(line), &result), line)
		t.Logf("%-20s gap %.2g nats, the base model is %.2g away", result.Name, result.Gap, result.Moved)
		require.Less(t, result.Gap, 1e-4, result.Name)
		require.Greater(t, result.Moved, 0.05, result.Name)
		checked++
	}
	require.Equal(t, len(cases), checked)
}
