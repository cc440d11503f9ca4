// Package realmodels compares released models with transformers. fetch.py downloads the models, and ART_REAL_MODELS
// names their folder. Without it the tests are skipped.
package realmodels

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/tokenizer/chat"
)

// tie is a difference of logits within float32 rounding: another order of the same additions may change its sign.
const tie = 1e-3

// reference is a chat that reference.py recorded.
type reference struct {
	Text   string    `json:"text"`
	Prompt []int32   `json:"prompt"`
	IDs    []int32   `json:"ids"`  // greedy
	Gaps   []float64 `json:"gaps"` // of logits, from each to the second best
}

// TestGreedy_SmolLM2 and TestGreedy_Gemma3 compare greedy replies with those of transformers on the same weights: they
// are equal, or the first token that differs is one of two equally likely ones. reference.py makes the goldens.
func TestGreedy_SmolLM2(t *testing.T) {
	base := open(t, "SmolLM2-135M-Instruct.Q4_1.gguf")
	template, err := chat.New(base.Tokenizer, "")
	require.NoError(t, err)
	compare(t, base, "smollm2", func(text string) []int32 {
		ids, err := template.Prompt([]art.Message{art.User(text)}, nil)
		require.NoError(t, err)
		return ids
	})
}

func TestGreedy_Gemma3(t *testing.T) {
	base := open(t, "gemma-3-270m-q4_k_m.gguf")
	compare(t, base, "gemma3", func(text string) []int32 { // the file has no template
		return base.Tokenizer.Encode("<start_of_turn>user\n"+text+"<end_of_turn>\n<start_of_turn>model\n", true)
	})
}

// open opens a model of the folder.
func open(t *testing.T, name string) *basemodel.Base {
	folder := os.Getenv("ART_REAL_MODELS")
	if folder == "" {
		t.Skip("ART_REAL_MODELS is not set")
	}
	base, err := basemodel.Open(filepath.Join(folder, name))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, base.Close()) })
	return base
}

// compare lets a model continue all prompts of a golden file at once.
func compare(t *testing.T, base *basemodel.Base, golden string, encode func(text string) []int32) {
	chats := read(t, golden)
	device, err := cpu.New(nil)
	require.NoError(t, err)
	defer device.Finalize()
	params, err := base.Params(device)
	require.NoError(t, err)
	e, err := engine.New(engine.Options{Device: device, Config: base.Config, Params: params, Slots: len(chats),
		Context: 128})
	require.NoError(t, err)
	defer e.Close()
	t.Run("chats", func(t *testing.T) {
		for _, c := range chats {
			t.Run(c.Text, func(t *testing.T) {
				t.Parallel()
				require.Equal(t, c.Prompt, encode(c.Text))
				r, err := e.Complete(t.Context(), engine.Request{Prompt: c.Prompt, MaxTokens: len(c.IDs)})
				require.NoError(t, err)
				c.check(t, r.IDs)
			})
		}
	})
}

// check compares ids with the reference, up to the first tie.
func (c reference) check(t *testing.T, ids []int32) {
	require.Len(t, ids, len(c.IDs))
	for i, want := range c.IDs {
		if ids[i] == want {
			continue
		}
		require.LessOrEqual(t, c.Gaps[i], tie, "token %d is %d, and %d in the reference, where the next is %v behind", i,
			ids[i], want, c.Gaps[i])
		t.Logf("token %d is %d, and %d in the reference: a tie within %v", i, ids[i], want, c.Gaps[i])
		return
	}
}

func read(t *testing.T, golden string) (chats []reference) {
	content, err := os.ReadFile(filepath.Join("testdata", golden+".json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &chats))
	require.Len(t, chats, 8)
	for _, c := range chats {
		require.Len(t, c.IDs, 32)
		require.Len(t, c.Gaps, 32)
	}
	return chats
}
