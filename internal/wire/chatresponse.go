package wire

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/goart-dev/art"
)

// ChatResponse is the body of a chat completions response.
type ChatResponse struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`  // "chat.completion"
	Created int64        `json:"created"` // Unix seconds
	Model   string       `json:"model"`   // name@step
	Choices []ChatChoice `json:"choices"`
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
	// StopReason is vLLM's: the stop string that ended the reply, or the stop token.
	StopReason any `json:"stop_reason,omitempty"`
	// TokenIDs are the sampled tokens, stop token included, if return_token_ids is set.
	TokenIDs []int32 `json:"token_ids,omitempty"`
	// Sample is the [art.Sample] of the message in its stored form, if [ChatRequest].ReturnSamples is set.
	Sample json.RawMessage `json:"art_sample,omitempty"`
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

// newUsage adds up the token counts of replies to n of which there is each prompt. A prompt counts once, and of it what
// was found before the first of its replies had computed it.
func newUsage(replies []*art.ChatResponse, n int) *Usage {
	sum := AddUsage(replies, n)
	return &Usage{
		PromptTokens: sum.PromptTokens, CompletionTokens: sum.CompletionTokens,
		TotalTokens: sum.PromptTokens + sum.CompletionTokens, PromptTokensDetails: PromptDetails{sum.CachedTokens},
	}
}

// AddUsage adds up the token counts of replies to n of which there is each prompt, as newUsage does.
func AddUsage(replies []*art.ChatResponse, n int) (u art.Usage) {
	for prompt := range slices.Chunk(replies, n) {
		cached := prompt[0].Usage.CachedTokens
		for _, r := range prompt {
			cached = min(cached, r.Usage.CachedTokens)
			u.CompletionTokens += r.Usage.CompletionTokens
		}
		u.PromptTokens += prompt[0].Usage.PromptTokens
		u.CachedTokens += cached
	}
	return u
}

// NewChatResponse converts the replies to a request, with their logprobs and token ids if the request set those fields.
// They are an error if a reply has no [art.Sample]. tokens is called for logprobs only.
func NewChatResponse(req *ChatRequest, replies []*art.ChatResponse, tokens TokenBytes) (*ChatResponse, error) {
	first := replies[0]
	resp := &ChatResponse{
		ID:      first.ID,
		Object:  "chat.completion",
		Created: time.Now().Unix(),
		Model:   first.Model,
		Usage:   newUsage(replies, len(replies)),
	}
	for i, r := range replies {
		choice, err := req.choice(i, r, tokens)
		if err != nil {
			return nil, err
		}
		resp.Choices = append(resp.Choices, choice)
	}
	if req.ReturnTokenIDs {
		resp.PromptTokenIDs = first.Message.Sample.PromptIDs
	}
	if req.PromptLogprobs != nil {
		resp.PromptLogprobs = newPromptLogprobs(first.PromptLogprobs, tokens)
	}
	return resp, nil
}

// choice converts one reply.
func (r *ChatRequest) choice(i int, reply *art.ChatResponse, tokens TokenBytes) (ChatChoice, error) {
	choice := ChatChoice{
		Index: i, Message: Message{reply.Message}, FinishReason: reply.Finish, StopReason: r.stopReason(reply),
	}
	sample := reply.Message.Sample
	if sample == nil && (r.Logprobs || r.ReturnTokenIDs) {
		return choice, noSampleError(&r.ChatSettings, reply.Model)
	}
	if r.Logprobs {
		choice.Logprobs = newLogprobs(sample.IDs, sample.Logprobs, reply.TopLogprobs, r.tokenTexts(tokens))
	}
	if r.ReturnTokenIDs {
		choice.TokenIDs = sample.IDs
	}
	if r.ReturnSamples && sample != nil {
		var err error
		if choice.Sample, err = EncodeSample(sample); err != nil {
			return choice, err
		}
	}
	return choice, nil
}

// stopReason returns the stop string that ended a reply, or the one of the request's stop token ids; nil if none did.
func (s *ChatSettings) stopReason(r *art.ChatResponse) any {
	if r.Stopped != "" {
		return r.Stopped
	}
	if sample := r.Message.Sample; r.Finish == art.FinishStop && sample != nil && len(sample.IDs) > 0 {
		if last := sample.IDs[len(sample.IDs)-1]; slices.Contains(s.StopTokenIDs, last) {
			return last
		}
	}
	return nil
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
