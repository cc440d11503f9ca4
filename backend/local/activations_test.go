package local

import (
	"flag"
	"io"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

var (
	perplexityModel = flag.String("perplexity-model", "", "GGUF file of which TestActivations_Perplexity measures a text")
	perplexityText  = flag.String("perplexity-text", "../../docs/learning.md", "the text")
)

// TestActivations_Perplexity measures what rounded activations cost: the perplexity of a text in windows of 512 tokens,
// at most 16, and how far the logprobs of its tokens are from those without rounding.
//
//	go test ./backend/local -run Activations_Perplexity -v -perplexity-model FILE.gguf
func TestActivations_Perplexity(t *testing.T) {
	if *perplexityModel == "" {
		t.Skip("no -perplexity-model is given")
	}
	text, err := os.ReadFile(*perplexityText)
	require.NoError(t, err)
	const window, most = 512, 16
	score := func(activations string) (logprobs []float32) {
		b, err := Open(t.Context(), &Options{
			Dir: t.TempDir(), Slots: 1, Context: 2 * window, Weights: "stored", Activations: activations, Progress: io.Discard,
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, b.Close()) }()
		m := art.NewModel("scored", &art.ModelOptions{Base: *perplexityModel, Frozen: true})
		require.NoError(t, m.Register(t.Context(), b))
		e, err := b.entry("score", m)
		require.NoError(t, err)
		ids := e.base.tokenizer.Encode(string(text), true)
		for n := 0; n < most && len(ids) >= window; n++ {
			list, _, err := b.Logprobs(t.Context(), m, ids[:window])
			require.NoError(t, err)
			logprobs, ids = append(logprobs, list...), ids[window:]
		}
		return logprobs
	}
	perplexity := func(logprobs []float32) float64 {
		sum := 0.0
		for _, x := range logprobs {
			sum -= float64(x)
		}
		return math.Exp(sum / float64(len(logprobs)))
	}
	exact, rounded := score(""), score("int8")
	require.Len(t, rounded, len(exact))
	mean, largest := 0.0, 0.0
	for i := range exact {
		diff := math.Abs(float64(exact[i] - rounded[i]))
		mean, largest = mean+diff/float64(len(exact)), max(largest, diff)
	}
	t.Logf("%d tokens: perplexity %.4f, with int8 %.4f; logprobs differ by %.4f, at most %.3f",
		len(exact), perplexity(exact), perplexity(rounded), mean, largest)
	require.InEpsilon(t, perplexity(exact), perplexity(rounded), 0.02)
}
