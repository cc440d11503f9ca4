package wire

import (
	"time"

	"github.com/goart-dev/art"
)

// ChatResponse is the body of a chat completions response.
type ChatResponse struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`  // "chat.completion"
	Created int64        `json:"created"` // Unix seconds
	Model   string       `json:"model"`   // name@step
	Choices []ChatChoice `json:"choices"` // one
	Usage   *Usage       `json:"usage"`
	// PromptTokenIDs is the exact context, if return_token_ids is set.
	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"`
	// PromptLogprobs are those of the context, if prompt_logprobs is set.
	PromptLogprobs PromptLogprobs `json:"prompt_logprobs,omitempty"`
}

// ChatChoice is the reply in a [ChatResponse].
type ChatChoice struct {
	Index        int       `json:"index"`
	Message      Message   `json:"message"`
	Logprobs     *Logprobs `json:"logprobs"`
	FinishReason string    `json:"finish_reason"`
	// TokenIDs are the sampled tokens, stop token included, if return_token_ids is set.
	TokenIDs []int32 `json:"token_ids,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	PromptTokens        int           `json:"prompt_tokens"`
	CompletionTokens    int           `json:"completion_tokens"`
	TotalTokens         int           `json:"total_tokens"`
	PromptTokensDetails PromptDetails `json:"prompt_tokens_details"`
}

// PromptDetails says how many tokens of a prompt were found in the KV cache.
type PromptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// newUsage converts token counts.
func newUsage(u art.Usage) *Usage {
	return &Usage{
		PromptTokens:        u.PromptTokens,
		CompletionTokens:    u.CompletionTokens,
		TotalTokens:         u.PromptTokens + u.CompletionTokens,
		PromptTokensDetails: PromptDetails{CachedTokens: u.CachedTokens},
	}
}

// NewChatResponse converts the reply to a request, with its logprobs and token ids if the request set those fields.
// They are an error if the reply has no [art.Sample]. tokens is called for logprobs only.
func NewChatResponse(req *ChatRequest, reply *art.ChatResponse, tokens TokenBytes) (*ChatResponse, error) {
	choice := ChatChoice{Message: Message{reply.Message}, FinishReason: reply.Finish}
	resp := &ChatResponse{
		ID:      reply.ID,
		Object:  "chat.completion",
		Created: time.Now().Unix(),
		Model:   reply.Model,
		Usage:   newUsage(reply.Usage),
	}
	sample := reply.Message.Sample
	if sample == nil && (req.Logprobs || req.ReturnTokenIDs) {
		return nil, noSampleError(&req.ChatSettings, reply.Model)
	}
	if req.Logprobs {
		choice.Logprobs = newLogprobs(sample.IDs, sample.Logprobs, reply.TopLogprobs, req.tokenTexts(tokens))
	}
	if req.ReturnTokenIDs {
		resp.PromptTokenIDs, choice.TokenIDs = sample.PromptIDs, sample.IDs
	}
	resp.Choices = []ChatChoice{choice}
	return resp, nil
}

// tokenTexts returns how logprobs show tokens.
func (s *ChatSettings) tokenTexts(tokens TokenBytes) TokenBytes {
	if s.ReturnTokensAsTokenIDs {
		return asTokenIDs
	}
	return tokens
}

// noSampleError says that a reply has none of the tokens that the request wants.
func noSampleError(req *ChatSettings, model string) *Error {
	field := "return_token_ids"
	if req.Logprobs {
		field = "logprobs"
	}
	return FieldError(field, "is not supported by model %s, which is frozen: its replies carry no tokens", model)
}
