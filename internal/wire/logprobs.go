package wire

import (
	"fmt"
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
	Logprob     float32      `json:"logprob"`
	Bytes       []int        `json:"bytes"`
	TopLogprobs []TopLogprob `json:"top_logprobs"` // the likeliest tokens; empty, not null, if none are asked for
}

// TopLogprob is one of the likeliest tokens at a position; see [TokenLogprob] for its fields.
type TopLogprob struct {
	Token   string  `json:"token"`
	Logprob float32 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// TokenBytes returns the bytes of a token.
type TokenBytes func(id int32) []byte

// newLogprobs converts the logprobs of sampled tokens, with the likeliest tokens at each position; top may be nil.
func newLogprobs(ids []int32, logprobs []float32, top [][]art.TokenLogprob, tokens TokenBytes) *Logprobs {
	content := make([]TokenLogprob, len(ids))
	for i, id := range ids {
		t := tokens.logprob(id, logprobs[i])
		content[i] = TokenLogprob{Token: t.Token, Logprob: t.Logprob, Bytes: t.Bytes, TopLogprobs: []TopLogprob{}}
		if i >= len(top) {
			continue
		}
		for _, c := range top[i] {
			content[i].TopLogprobs = append(content[i].TopLogprobs, tokens.logprob(c.ID, c.Logprob))
		}
	}
	return &Logprobs{Content: content}
}

// logprob converts one logprob.
func (tokens TokenBytes) logprob(id int32, logprob float32) TopLogprob {
	text := tokens(id)
	return TopLogprob{Token: validText(text), Logprob: finite(logprob), Bytes: byteValues(text)}
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
