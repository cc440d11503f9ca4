package wire

import (
	"strconv"

	"github.com/goart-dev/art"
)

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
