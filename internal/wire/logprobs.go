package wire

import (
	"strings"

	"github.com/goart-dev/art"
)

// minLogprob replaces -Inf, which JSON cannot represent. OpenAI and vLLM use the same value.
const minLogprob = -9999

// Logprobs are the log-probabilities of the sampled tokens, stop token included.
type Logprobs struct {
	Content []TokenLogprob `json:"content"`
}

// TokenLogprob is one sampled token.
type TokenLogprob struct {
	// Token is the text of the token, with U+FFFD for bytes that are not valid UTF-8. Bytes are exact.
	Token string `json:"token"`
	// Logprob is the natural logarithm of its probability under the policy, before temperature, top-k and top-p.
	Logprob     float32    `json:"logprob"`
	Bytes       []int      `json:"bytes"`
	TopLogprobs []struct{} `json:"top_logprobs"` // always empty
}

// TokenBytes returns the bytes of a token.
type TokenBytes func(id int32) []byte

// newLogprobs converts the logprobs of a sample.
func newLogprobs(sample *art.Sample, tokens TokenBytes) *Logprobs {
	content := make([]TokenLogprob, len(sample.IDs))
	for i, id := range sample.IDs {
		text := tokens(id)
		content[i] = TokenLogprob{
			Token:       strings.ToValidUTF8(string(text), "\uFFFD"),
			Logprob:     finite(sample.Logprobs[i]),
			Bytes:       byteValues(text),
			TopLogprobs: []struct{}{},
		}
	}
	return &Logprobs{Content: content}
}

// finite returns x, or minLogprob if x is lower or NaN.
func finite(x float32) float32 {
	if x >= minLogprob {
		return x
	}
	return minLogprob
}

// byteValues returns bytes as numbers, because JSON writes a []byte as base64.
func byteValues(text []byte) []int {
	values := make([]int, len(text))
	for i, b := range text {
		values[i] = int(b)
	}
	return values
}
