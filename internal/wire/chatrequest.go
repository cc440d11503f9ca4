package wire

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/goart-dev/art"
)

// ChatRequest is the body of POST /v1/chat/completions: the fields that are supported.
type ChatRequest struct {
	Messages []art.Message `json:"messages"`
	Tools    []art.Tool    `json:"tools,omitempty"`
	// ReturnSamples adds the sample to each choice. It is an option of the server.
	ReturnSamples bool `json:"-"`
	ChatSettings
}

// ChatSettings are the fields of a [ChatRequest] other than its lists, which are decoded one element at a time.
type ChatSettings struct {
	Model               string     `json:"model"`
	ToolChoice          ToolChoice `json:"tool_choice,omitempty"`
	Temperature         *float64   `json:"temperature,omitempty"`
	TopP                *float64   `json:"top_p,omitempty"`
	TopK                *int       `json:"top_k,omitempty"` // vLLM's; -1 and 0 are off
	MaxTokens           *int       `json:"max_tokens,omitempty"`
	MaxCompletionTokens *int       `json:"max_completion_tokens,omitempty"`
	Stop                Stop       `json:"stop,omitempty"`
	Seed                *Seed      `json:"seed,omitempty"`
	Logprobs            bool       `json:"logprobs,omitempty"`
	TopLogprobs         int        `json:"top_logprobs,omitempty"`
	N                   *int       `json:"n,omitempty"` // replies; see [ChatSettings.Choices]
	ReturnTokenIDs      bool       `json:"return_token_ids,omitempty"`
	// ReturnTokensAsTokenIDs is vLLM's: the tokens of logprobs are "token_id:N" in place of their text.
	ReturnTokensAsTokenIDs bool `json:"return_tokens_as_token_ids,omitempty"`
	// PromptLogprobs is vLLM's: it adds the logprobs of the prompt's tokens, and so many likeliest ones at each.
	PromptLogprobs *int `json:"prompt_logprobs,omitempty"`

	PresencePenalty  *float64  `json:"presence_penalty,omitempty"`
	FrequencyPenalty *float64  `json:"frequency_penalty,omitempty"`
	LogitBias        LogitBias `json:"logit_bias,omitempty"`
	// vLLM's.
	MinP              *float64 `json:"min_p,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`
	MinTokens         *int     `json:"min_tokens,omitempty"`
	StopTokenIDs      []int32  `json:"stop_token_ids,omitempty"`
	IgnoreEOS         bool     `json:"ignore_eos,omitempty"`
	AllowedTokenIDs   []int32  `json:"allowed_token_ids,omitempty"`
	BadWords          []string `json:"bad_words,omitempty"`

	ResponseFormat    *ResponseFormat    `json:"response_format,omitempty"`
	StructuredOutputs *StructuredOutputs `json:"structured_outputs,omitempty"` // vLLM's

	ChatTemplateKwargs json.RawMessage `json:"chat_template_kwargs,omitempty"` // vLLM's: an object, or null
	Stream             bool            `json:"stream,omitempty"`
	StreamOptions      *StreamOptions  `json:"stream_options,omitempty"`
}

// StreamOptions select what a stream contains.
type StreamOptions struct {
	// IncludeUsage adds a last chunk with the token counts.
	IncludeUsage bool `json:"include_usage"`
	// ContinuousUsageStats is vLLM's. It is not supported: clients that add up usage would count tokens twice.
	ContinuousUsageStats bool `json:"continuous_usage_stats"`
}

// Choices is the number of replies that a request wants.
func (s *ChatSettings) Choices() int {
	if s.N == nil {
		return 1
	}
	return *s.N
}

// History returns the conversation of a request. With tool_choice "none" the model does not see the tools.
func (r *ChatRequest) History() *art.History {
	h := &art.History{Messages: r.Messages, Tools: r.Tools}
	if r.ToolChoice == "none" {
		h.Tools = nil
	}
	return h
}

// Options returns the sampling options of a request. Fields that it leaves out have the defaults of the model.
func (s *ChatSettings) Options() *art.ChatOptions {
	opts := &art.ChatOptions{
		Temperature: s.Temperature,
		TopP:        s.TopP,
		TopK:        s.TopK,
		MaxTokens:   s.MaxTokens,
		Stop:        s.Stop,
		Seed:        (*uint64)(s.Seed),

		TemplateArgs: s.ChatTemplateKwargs,

		MinP: s.MinP, RepetitionPenalty: s.RepetitionPenalty, PresencePenalty: s.PresencePenalty,
		FrequencyPenalty: s.FrequencyPenalty, LogitBias: s.LogitBias, MinTokens: s.MinTokens,
		StopTokenIDs: s.StopTokenIDs, TopLogprobs: &s.TopLogprobs, PromptLogprobs: s.PromptLogprobs,
		ResponseFormat: s.format(), AllowedTokenIDs: s.AllowedTokenIDs, BadWords: s.BadWords,
	}
	if s.IgnoreEOS {
		opts.IgnoreEOS = &s.IgnoreEOS
	}
	opts.ToolChoice, _ = s.ToolChoice.choice() // it is valid
	if s.TopK != nil && *s.TopK == -1 {
		opts.TopK = new(int)
	}
	if opts.MaxTokens == nil {
		opts.MaxTokens = s.MaxCompletionTokens
	}
	return opts
}

// Stop is a list of stop strings. A single string on the wire is a list of one.
type Stop []string

// UnmarshalJSON reads a string or a list of strings.
func (s *Stop) UnmarshalJSON(data []byte) error {
	var one *string
	if err := json.Unmarshal(data, &one); err == nil {
		if one != nil {
			*s = Stop{*one}
		}
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return FieldError("stop", "must be a string or a list of strings")
	}
	*s = list
	return nil
}

// LogitBias is a bias for each of some tokens, by their ids, which are texts on the wire.
type LogitBias map[int32]float64

// UnmarshalJSON reads an object of numbers.
func (b *LogitBias) UnmarshalJSON(data []byte) error {
	var read map[int32]float64
	if err := json.Unmarshal(data, &read); err != nil {
		return FieldError("logit_bias", "must be an object of numbers by token ids, which are integers of 32 bits")
	}
	*b = read
	return nil
}

// Seed is the sampling seed. It may be negative on the wire, as OpenAI's is a signed integer; it is then taken modulo
// 2^64.
type Seed uint64

// UnmarshalJSON reads an integer between -2^63 and 2^64-1.
func (s *Seed) UnmarshalJSON(data []byte) error {
	if u, err := strconv.ParseUint(string(data), 10, 64); err == nil {
		*s = Seed(u)
		return nil
	}
	i, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return FieldError("seed", "must be an integer of 64 bits")
	}
	*s = Seed(i)
	return nil
}

// FieldError returns the error of one field of a request. Its message begins with the name of the field.
func FieldError(field, format string, args ...any) *Error {
	return &Error{
		Status:  http.StatusBadRequest,
		Message: field + " " + fmt.Sprintf(format, args...),
		Type:    TypeInvalid,
		Param:   field,
	}
}
