package wire

import (
	"fmt"
	"strings"
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

// newLogprobs converts the logprobs of sampled tokens.
func newLogprobs(ids []int32, logprobs []float32, tokens TokenBytes) *Logprobs {
	content := make([]TokenLogprob, len(ids))
	for i, id := range ids {
		text := tokens(id)
		content[i] = TokenLogprob{
			Token:       validText(text),
			Logprob:     finite(logprobs[i]),
			Bytes:       byteValues(text),
			TopLogprobs: []struct{}{},
		}
	}
	return &Logprobs{Content: content}
}

// asTokenIDs returns a [TokenBytes] that shows a token as "token_id:" and its id, which no text can be taken for.
func asTokenIDs(id int32) []byte { return fmt.Appendf(nil, "token_id:%d", id) }

// validText returns a text with U+FFFD for bytes that are not UTF-8.
func validText(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }

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
