package wire

import "strconv"

// PromptLogprobs are vLLM's logprobs of a prompt: for each token an object whose one key is the token's id. The first
// token has null.
type PromptLogprobs []map[string]PromptLogprob

// PromptLogprob is one token of a prompt.
type PromptLogprob struct {
	Logprob float32 `json:"logprob"`
	// Rank among all tokens is not known.
	Rank *int `json:"rank"`
	// DecodedToken is the text of the token.
	DecodedToken *string `json:"decoded_token"`
}

// NewPromptLogprobs converts the logprobs of all tokens of a prompt but the first. tokens may be nil.
func NewPromptLogprobs(prompt []int32, logprobs []float32, tokens TokenBytes) PromptLogprobs {
	out := make(PromptLogprobs, len(prompt))
	for i, id := range prompt[1:] {
		one := PromptLogprob{Logprob: finite(logprobs[i])}
		if tokens != nil {
			text := validText(tokens(id))
			one.DecodedToken = &text
		}
		out[i+1] = map[string]PromptLogprob{strconv.Itoa(int(id)): one}
	}
	return out
}
