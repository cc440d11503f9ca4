package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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

func (tokens TokenBytes) logprob(id int32, logprob float32) TopLogprob {
	text := tokens(id)
	values := make([]int, len(text)) // JSON writes a []byte as base64
	for i, b := range text {
		values[i] = int(b)
	}
	return TopLogprob{Token: validText(text), Logprob: finite(logprob), Bytes: values}
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

// PromptLogprobs are vLLM's logprobs of a prompt: for each token an object that has it and the likeliest others, by
// their ids. The first token has null.
type PromptLogprobs []map[string]PromptLogprob

// PromptLogprob is one token.
type PromptLogprob struct {
	Logprob float32 `json:"logprob"`
	// Rank among all tokens; 1 is the likeliest.
	Rank int `json:"rank"`
	// DecodedToken is the text of the token.
	DecodedToken *string `json:"decoded_token"`
}

// newPromptLogprobs converts the logprobs of a prompt. tokens may be nil.
func newPromptLogprobs(prompt [][]art.TokenLogprob, tokens TokenBytes) PromptLogprobs {
	out := make(PromptLogprobs, len(prompt))
	for i, at := range prompt {
		if len(at) == 0 {
			continue
		}
		out[i] = make(map[string]PromptLogprob, len(at))
		for _, t := range at {
			one := PromptLogprob{Logprob: finite(t.Logprob), Rank: t.Rank}
			if tokens != nil {
				text := validText(tokens(t.ID))
				one.DecodedToken = &text
			}
			out[i][strconv.Itoa(int(t.ID))] = one
		}
	}
	return out
}

// EncodeSample returns the stored form of a sample: the element of "samples" in that of [art.History]. It is lossless.
func EncodeSample(s *art.Sample) (json.RawMessage, error) {
	data, err := json.Marshal(art.History{Messages: []art.Message{{Role: art.RoleAssistant, Sample: s}}})
	if err != nil {
		return nil, err
	}
	var stored struct {
		Samples []json.RawMessage `json:"samples"`
	}
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, err
	}
	return stored.Samples[0], nil
}

// DecodeSample reads what [EncodeSample] wrote.
func DecodeSample(data json.RawMessage) (*art.Sample, error) {
	stored, err := json.Marshal(map[string]any{
		"messages": []map[string]string{{"role": "assistant", "content": ""}}, "samples": []json.RawMessage{data},
	})
	if err != nil {
		return nil, err
	}
	var h art.History
	if err := json.Unmarshal(stored, &h); err != nil {
		return nil, err
	}
	if h.Messages[0].Sample == nil {
		return nil, errors.New("the sample is null")
	}
	return h.Messages[0].Sample, nil
}
