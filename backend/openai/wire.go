package openai

import (
	"encoding/json"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// request is the body of a chat completions request. Its seed is signed, as OpenAI's is.
type request struct {
	wire.ChatRequest
	Seed int64 `json:"seed"`
}

// response is the body of an answer. Messages are decoded leniently, in a second step.
type response struct {
	ID             string           `json:"id"`
	Choices        []responseChoice `json:"choices"`
	Usage          *wire.Usage      `json:"usage"`
	PromptTokenIDs []int32          `json:"prompt_token_ids"` // vLLM's
	Error          json.RawMessage  `json:"error"`            // OpenRouter's, with status 200
}

type responseChoice struct {
	Message      json.RawMessage `json:"message"`
	FinishReason string          `json:"finish_reason"`
	Logprobs     *wire.Logprobs  `json:"logprobs"`
	TokenIDs     []int32         `json:"token_ids"` // vLLM's
	Error        json.RawMessage `json:"error"`     // OpenRouter's
}

// newRequest converts a request. own is set for OpenAI itself.
func newRequest(model string, req *art.ChatRequest, own bool) *request {
	s := req.Settings
	settings := wire.ChatSettings{
		Model: model, Temperature: &s.Temperature, TopP: &s.TopP, Stop: s.Stop, ChatTemplateKwargs: req.TemplateArgs,
	}
	limit := &settings.MaxTokens
	if own {
		limit = &settings.MaxCompletionTokens
		settings.Temperature, settings.TopP = unlessOne(s.Temperature), unlessOne(s.TopP)
	}
	if s.MaxTokens > 0 {
		*limit = &s.MaxTokens
	}
	if s.TopK > 0 {
		settings.TopK = &s.TopK
	}
	settings.StopTokenIDs, settings.LogitBias, settings.MinTokens = s.StopTokenIDs, s.LogitBias, unlessZero(s.MinTokens)
	settings.AllowedTokenIDs, settings.BadWords, settings.IgnoreEOS = s.AllowedTokenIDs, s.BadWords, s.IgnoreEOS
	settings.MinP, settings.RepetitionPenalty = unlessZero(s.MinP), unlessZero(s.RepetitionPenalty)
	settings.PresencePenalty, settings.FrequencyPenalty = unlessZero(s.PresencePenalty), unlessZero(s.FrequencyPenalty)
	settings.SetFormat(s.ResponseFormat)
	settings.ToolChoice = wire.NewToolChoice(s.ToolChoice)
	chat := wire.ChatRequest{Messages: outgoing(req.Messages, own), Tools: req.Tools, ChatSettings: settings}
	return &request{ChatRequest: chat, Seed: int64(s.Seed)}
}

// unlessOne returns nil for 1, the default of OpenAI's API.
func unlessOne(x float64) *float64 {
	if x == 1 {
		return nil
	}
	return &x
}

// unlessZero returns nil for 0, which is off.
func unlessZero[T int | float64](x T) *T {
	if x == 0 {
		return nil
	}
	return &x
}

// usage converts token counts; nil when the server did not count.
func (r *response) usage() *art.Usage {
	u := r.Usage
	if u == nil || u.PromptTokens <= 0 || u.CompletionTokens < 0 {
		return nil
	}
	return &art.Usage{
		PromptTokens: u.PromptTokens, CachedTokens: u.PromptTokensDetails.CachedTokens, CompletionTokens: u.CompletionTokens,
	}
}

// logprobs returns those of the tokens, nil when there are none.
func (c *responseChoice) logprobs() []float32 {
	if c.Logprobs == nil {
		return nil
	}
	out := make([]float32, len(c.Logprobs.Content))
	for i, token := range c.Logprobs.Content {
		out[i] = token.Logprob
	}
	return out
}
