package wire

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/goart-dev/art"
)

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

// validate finds invalid settings.
func (s *ChatSettings) validate(p *problemList) {
	s.validateSampling(p)
	s.validateShape(p)
	s.validateLength(p)
	s.validateOutput(p)
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

// validateOutput checks what is returned besides the text.
func (s *ChatSettings) validateOutput(p *problemList) {
	n := s.TopLogprobs
	p.require(n >= 0 && n <= maxLogprobs, "top_logprobs", "must be between 0 and %d", maxLogprobs)
	p.require(n == 0 || s.Logprobs, "top_logprobs", "needs logprobs to be true")
	within := s.PromptLogprobs == nil || *s.PromptLogprobs >= 0 && *s.PromptLogprobs <= maxLogprobs
	p.require(within, "prompt_logprobs", "must be between 0 and %d", maxLogprobs)
	p.require(s.Choices() >= 1, "n", "must be at least 1")
	p.require(s.PromptLogprobs == nil || !s.Stream, "prompt_logprobs", "is not supported in a stream; leave stream out")
	p.require(s.StreamOptions == nil || !s.StreamOptions.ContinuousUsageStats,
		"stream_options.continuous_usage_stats", "is not supported: use include_usage")
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
