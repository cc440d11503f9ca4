package openai

import (
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer/openai"
)

// encodings are those of OpenAI's models, by the beginning of their names; the longest one counts.
var encodings = map[string]string{
	"gpt-3.5": openai.CL100K, "gpt-4": openai.CL100K, "gpt-4o": openai.O200K, "gpt-4.": openai.O200K,
	"gpt-5": openai.O200K, "chatgpt-4o": openai.O200K, "o1": openai.O200K, "o3": openai.O200K, "o4": openai.O200K,
	"gpt-oss": openai.Harmony,
}

// contexts are in tokens, by name or by its beginning before a "-"; the longest one counts.
var contexts = map[string]int{
	"gpt-3.5-turbo": 16385, "gpt-4": 8192, "gpt-4-32k": 32768, "gpt-4-turbo": 128000, "gpt-4-1106": 128000,
	"gpt-4-0125": 128000, "gpt-4-vision": 128000, "gpt-4o": 128000, "chatgpt-4o": 128000, "gpt-4.1": 1047576,
	"gpt-4.5": 128000, "gpt-5": 400000, "o1": 200000, "o1-mini": 128000, "o1-preview": 128000, "o3": 200000,
	"o4-mini": 200000, "gpt-oss": 131072,
}

const (
	// tokensPerMessage begin and end a message: <|im_start|>, the role and <|im_end|>, or Harmony's.
	tokensPerMessage = 3
	// tokensPerReply begin the reply.
	tokensPerReply = 3
)

// plain returns the name of a model without a router's prefix, and that of the model that was fine-tuned.
func plain(model string) string {
	model = strings.TrimPrefix(strings.TrimPrefix(model, "openai/"), "ft:")
	model, _, _ = strings.Cut(model, ":")
	return model
}

// longest returns the value of the longest key that fits.
func longest[T any](of map[string]T, fits func(key string) bool) (value T, ok bool) {
	best := ""
	for key := range of {
		if fits(key) && len(key) > len(best) {
			best = key
		}
	}
	value, ok = of[best]
	return value, ok
}

// ContextLength implements [hosted.TokenCounter].
func (*service) ContextLength(model string) int {
	model = plain(model)
	n, _ := longest(contexts, func(key string) bool { return model == key || strings.HasPrefix(model, key+"-") })
	return n
}

// CountPrompt implements [hosted.TokenCounter].
func (*service) CountPrompt(model string, req *art.ChatRequest) (tokens int, ok bool) {
	model = plain(model)
	name, ok := longest(encodings, func(key string) bool { return strings.HasPrefix(model, key) })
	if !ok {
		return 0, false
	}
	encoding, err := openai.Encoding(name)
	if err != nil {
		return 0, false
	}
	count := func(text string) { tokens += len(encoding.EncodeOrdinary(text)) }
	tokens = tokensPerReply
	for i := range req.Messages {
		m := &req.Messages[i]
		tokens += tokensPerMessage
		count(m.Content)
		count(m.Name)
		for _, call := range m.ToolCalls {
			count(call.Name)
			count(call.Arguments)
		}
	}
	for i := range req.Tools {
		count(req.Tools[i].Name)
		count(req.Tools[i].Description)
	}
	return tokens, true
}
