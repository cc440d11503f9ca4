package transformers

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/model"
)

// Bounds relative to the largest logit: of float32, which llama.cpp computes in here, of its GELU, which is a table in
// float16, and of matrices in Q8_0, or in float16 where their rows are no multiple of 32.
const (
	closeGELU = 2e-3
	closeQ8   = 0.05
)

// TestGGUF: llama.cpp computes from a GGUF file that is written here what this library computes from it, which is what
// it computes from the checkpoint but for rounding.
//
//	ART_LLAMACPP_PYTHON=VENV/bin/python     of internal/dev/conformance/llamacpp/requirements.txt
func TestGGUF(t *testing.T) {
	if os.Getenv("ART_LLAMACPP_PYTHON") == "" {
		t.Skip("ART_LLAMACPP_PYTHON is not set")
	}
	list, dir := records(t, true), t.TempDir()
	type request struct {
		Model string    `json:"model"`
		Rows  [][]int32 `json:"rows"`
	}
	var requests []request
	for i, r := range list {
		file := filepath.Join(dir, fmt.Sprintf("%d.gguf", i))
		r.writeGGUF(t, file)
		requests = append(requests, request{file, r.Rows})
	}
	text, err := json.Marshal(requests)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), os.Getenv("ART_LLAMACPP_PYTHON"), "-B", "../llamacpp/logits.py")
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(text)), &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	theirs := lines(string(out))
	require.Len(t, theirs, len(list))
	for i, r := range list {
		t.Run(r.Name, func(t *testing.T) {
			var found struct {
				Error  string
				Logits [][]float32
			}
			decode(t, theirs[i], &found)
			require.Empty(t, found.Error)
			ours, plain := open(t, requests[i].Model), open(t, r.Dir)
			v, bound := plain.weights.Config.VocabSize, closeLogits
			if plain.weights.Config.HiddenActivation != "" {
				bound = closeGELU
			}
			for j, ids := range r.Rows {
				got, err := ours.logprobs(nil, ids)
				require.NoError(t, err)
				r.hold(t, "llama.cpp", bound, apart(found.Logits[j], got, v))
				before, err := plain.logprobs(nil, ids)
				require.NoError(t, err)
				require.Less(t, apart(found.Logits[j], before, v), closeQ8, "from the checkpoint itself")
			}
		})
	}
}

// writeGGUF writes a model with a tokenizer that llama.cpp accepts and nobody uses.
func (r *Record) writeGGUF(t *testing.T, path string) {
	t.Helper()
	c, err := model.Open(r.Dir)
	require.NoError(t, err)
	tokens, kinds := make([]string, c.Config.VocabSize), make([]int32, c.Config.VocabSize)
	for i := range tokens {
		tokens[i], kinds[i] = fmt.Sprintf("t%d", i), 1
	}
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, c.WriteGGUF(f, &model.GGUFOptions{Type: "Q8_0", Tokenizer: map[string]any{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": tokens,
		"tokenizer.ggml.token_type": kinds, "tokenizer.ggml.merges": []string{"t 0"},
	}}), r.Name)
	require.NoError(t, f.Close())
}
