package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

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

// ModelName is the name of the model.
func (s *ChatSettings) ModelName() string { return s.Model }

// Choices is the number of replies that a request wants.
func (s *ChatSettings) Choices() int {
	if s.N == nil {
		return 1
	}
	return *s.N
}

// History returns the conversation of a request. With tool_choice "none" the model does not see the tools.
func (r *ChatRequest) History() *art.History {
	return history(r.Messages, r.Tools, r.ToolChoice != "none")
}

func history(messages []art.Message, tools []art.Tool, withTools bool) *art.History {
	if !withTools {
		tools = nil
	}
	return &art.History{Messages: messages, Tools: tools}
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

// DecodeChatRequest decodes the body of a chat completions request and validates it. The error is an [*Error] with
// status 400 that lists what is wrong, up to 20 problems, or that of ctx, which is checked while decoding. The work is
// linear in the size of the body.
func DecodeChatRequest(ctx context.Context, body []byte) (*ChatRequest, error) {
	var p problemList
	req := new(ChatRequest)
	fields, err := decodeFields(&p, body, &req.ChatSettings, unsupported)
	if err != nil {
		return nil, err
	}
	if err := req.decodeInput(ctx, &p, fields); err != nil {
		return nil, err
	}
	return req, p.err()
}

// decodeFields decodes a body, and the settings in it. It finds the fields of a table that the request must not have.
func decodeFields(p *problemList, body []byte, s settings, table fieldTable) (map[string]json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, decodeError(err)
	}
	allowOneCall(fields)
	table.check(p, fields)
	decodeSettings(p, body, s)
	return fields, nil
}

// settings are the fields of a request that are decoded at once.
type settings interface{ validate(p *problemList) }

func decodeSettings(p *problemList, body []byte, s settings) {
	if err := json.Unmarshal(body, s); err != nil {
		p.add(decodeError(err))
		return
	}
	s.validate(p)
}

func (r *ChatRequest) decodeInput(ctx context.Context, p *problemList, fields map[string]json.RawMessage) (err error) {
	before := len(p.listed)
	if r.Messages, err = decodeMessages(ctx, p, fields["messages"]); err != nil {
		return err
	}
	p.require(len(r.Messages) > 0 || len(p.listed) > before, "messages", "must not be empty")
	r.Tools, err = decodeTools(ctx, p, fields["tools"])
	return err
}

func decodeError(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		return FieldError(kind.Field, "must be %s, not %s", kindName(kind.Type.String()), beginning(kind.Value))
	}
	message := fmt.Sprintf("the body is not a request: %v", err)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		message = fmt.Sprintf("the body is not valid JSON: %v (at byte %d)", err, syntax.Offset)
	case kind != nil:
		message = fmt.Sprintf("the body must be a JSON object, not %s", beginning(kind.Value))
	}
	return &Error{Status: http.StatusBadRequest, Message: message, Type: TypeInvalid}
}

// kindName returns the JSON name of a Go type.
func kindName(goType string) string {
	switch {
	case strings.Contains(goType, "int"):
		return "an integer"
	case strings.Contains(goType, "float"):
		return "a number"
	case strings.Contains(goType, "bool"):
		return "true or false"
	case strings.HasSuffix(goType, "string"):
		return "a string"
	}
	return "an object"
}

// Limits of a request. Those of stop strings and of logprobs at a position are OpenAI's.
const (
	maxStop       = 4
	maxStopTokens = 128
	maxLogprobs   = 20
	maxBias       = 1024
	maxBadWords   = 1024
)

// roles are the valid roles of a message.
var roles = []art.Role{art.RoleSystem, art.RoleDeveloper, art.RoleUser, art.RoleAssistant, art.RoleTool}

func (s *ChatSettings) validate(p *problemList) {
	s.validateSampling(p)
	s.validateShape(p)
	s.validateLength(p)
	n := s.TopLogprobs
	p.require(n >= 0 && n <= maxLogprobs, "top_logprobs", "must be between 0 and %d", maxLogprobs)
	p.require(n == 0 || s.Logprobs, "top_logprobs", "needs logprobs to be true")
	within := s.PromptLogprobs == nil || *s.PromptLogprobs >= 0 && *s.PromptLogprobs <= maxLogprobs
	p.require(within, "prompt_logprobs", "must be between 0 and %d", maxLogprobs)
	p.require(s.Choices() >= 1, "n", "must be at least 1")
	p.require(s.PromptLogprobs == nil || !s.Stream, "prompt_logprobs", "is not supported in a stream; leave stream out")
	p.require(s.StreamOptions == nil || !s.StreamOptions.ContinuousUsageStats,
		"stream_options.continuous_usage_stats", "is not supported: use include_usage")
	p.require(isObject(s.ChatTemplateKwargs),
		"chat_template_kwargs", "must be an object of variables for the chat template")
	s.ToolChoice.validate(p)
	s.validateFormat(p)
}

// isObject reports whether a valid JSON value is an object, null or absent.
func isObject(raw json.RawMessage) bool { return len(raw) == 0 || raw[0] == '{' || raw[0] == 'n' }

// validateSampling checks the sampling parameters and the limits of the reply.
func (s *ChatSettings) validateSampling(p *problemList) {
	p.require(s.Temperature == nil || *s.Temperature >= 0, "temperature", "must not be negative; 0 is greedy")
	p.require(s.TopP == nil || *s.TopP > 0 && *s.TopP <= 1, "top_p", "must be above 0 and at most 1; 1 is off")
	p.require(s.TopK == nil || *s.TopK >= -1, "top_k", "must not be below -1; -1 and 0 are off")
	p.require(s.MaxTokens == nil || *s.MaxTokens >= 1,
		"max_tokens", "must be at least 1; leave it out for the rest of the context")
	p.require(s.MaxCompletionTokens == nil || *s.MaxCompletionTokens >= 1,
		"max_completion_tokens", "must be at least 1; leave it out for the rest of the context")
	p.require(s.MaxTokens == nil || s.MaxCompletionTokens == nil || *s.MaxTokens == *s.MaxCompletionTokens,
		"max_tokens", "differs from max_completion_tokens; send one of them")
	p.require(len(s.Stop) <= maxStop, "stop", "has %d strings; at most %d are supported", len(s.Stop), maxStop)
	p.require(!slices.Contains(s.Stop, ""), "stop", "must not contain an empty string")
}

// validateShape checks what reshapes the distribution, besides temperature, top-p and top-k.
func (s *ChatSettings) validateShape(p *problemList) {
	p.require(s.MinP == nil || *s.MinP >= 0 && *s.MinP <= 1, "min_p", "must be between 0 and 1; 0 is off")
	p.require(s.RepetitionPenalty == nil || *s.RepetitionPenalty > 0, "repetition_penalty", "must be above 0; 1 is off")
	within := func(x *float64, limit float64) bool { return x == nil || math.Abs(*x) <= limit }
	p.require(within(s.PresencePenalty, 2), "presence_penalty", "must be between -2 and 2; 0 is off")
	p.require(within(s.FrequencyPenalty, 2), "frequency_penalty", "must be between -2 and 2; 0 is off")
	if n := len(s.LogitBias); n > maxBias {
		p.add(FieldError("logit_bias", "has %d tokens; at most %d are supported", n, maxBias))
		return
	}
	for _, id := range slices.Sorted(maps.Keys(s.LogitBias)) {
		bias := s.LogitBias[id]
		p.require(id >= 0 && within(&bias, 100), "logit_bias", "of token %d must be between -100 and 100", id)
	}
}

// validateLength checks what bounds the reply from below, and the tokens that end it.
func (s *ChatSettings) validateLength(p *problemList) {
	p.require(s.MinTokens == nil || *s.MinTokens >= 0, "min_tokens", "must not be negative")
	n := len(s.StopTokenIDs)
	p.require(n <= maxStopTokens, "stop_token_ids", "has %d ids; at most %d are supported", n, maxStopTokens)
	p.require(n == 0 || slices.Min(s.StopTokenIDs) >= 0, "stop_token_ids", "must not be negative")
	allowed := s.AllowedTokenIDs
	p.require(allowed == nil || len(allowed) > 0, "allowed_token_ids", "must not be empty; leave it out to allow all")
	p.require(len(allowed) == 0 || slices.Min(allowed) >= 0, "allowed_token_ids", "must not be negative")
	words := s.BadWords
	p.require(len(words) <= maxBadWords, "bad_words", "has %d words; at most %d are supported", len(words), maxBadWords)
	p.require(!slices.Contains(words, ""), "bad_words", "must not contain an empty string")
}
