package openai

import (
	"time"

	"github.com/goart-dev/art"
)

// Response is the body of a chat completions response.
type Response struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`  // "chat.completion"
	Created int64    `json:"created"` // Unix seconds
	Model   string   `json:"model"`   // name@step
	Choices []Choice `json:"choices"`
	Usage   *Usage   `json:"usage"`
	// PromptTokenIDs is the exact context, when return_token_ids asked for it.
	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"`
}

// Choice is the one reply in a [Response].
type Choice struct {
	Index        int         `json:"index"`
	Message      art.Message `json:"message"`
	Logprobs     *Logprobs   `json:"logprobs"`
	FinishReason string      `json:"finish_reason"`
	// TokenIDs are the sampled tokens, when return_token_ids asked for them. They include the stop token.
	TokenIDs []int32 `json:"token_ids,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	PromptTokens        int           `json:"prompt_tokens"`
	CompletionTokens    int           `json:"completion_tokens"`
	TotalTokens         int           `json:"total_tokens"`
	PromptTokensDetails PromptDetails `json:"prompt_tokens_details"`
}

// PromptDetails says how much of a prompt was not computed again.
type PromptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// newUsage puts token counts into their wire form.
func newUsage(u art.Usage) *Usage {
	return &Usage{
		PromptTokens:        u.PromptTokens,
		CompletionTokens:    u.CompletionTokens,
		TotalTokens:         u.PromptTokens + u.CompletionTokens,
		PromptTokensDetails: PromptDetails{CachedTokens: u.CachedTokens},
	}
}

// newResponse puts a reply into its wire form, with as much beside the text as the request asked for.
func newResponse(req *Request, reply *art.ChatResponse, tokens tokenFunc) (*Response, error) {
	choice := Choice{Message: reply.Message, FinishReason: reply.Finish}
	resp := &Response{
		ID:      reply.ID,
		Object:  "chat.completion",
		Created: time.Now().Unix(),
		Model:   reply.Model,
		Usage:   newUsage(reply.Usage),
	}
	sample := reply.Message.Sample
	if sample == nil && (req.Logprobs || req.ReturnTokenIDs) {
		return nil, noSampleError(req, reply.Model)
	}
	if req.Logprobs {
		choice.Logprobs = newLogprobs(sample, tokens)
	}
	if req.ReturnTokenIDs {
		resp.PromptTokenIDs, choice.TokenIDs = sample.PromptIDs, sample.IDs
	}
	resp.Choices = []Choice{choice}
	return resp, nil
}

// noSampleError says that a reply came without the tokens that the request asked for.
func noSampleError(req *Request, model string) *Error {
	field := "return_token_ids"
	if req.Logprobs {
		field = "logprobs"
	}
	return fieldError(field, "is not supported by model %s, which is frozen: its replies carry no tokens", model)
}
