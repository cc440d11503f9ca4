// Package openai is the backend of models behind an API that speaks OpenAI's chat completions: OpenAI, OpenRouter,
// vLLM, Ollama, llama.cpp, and the server of this module itself. It answers and logs, for judges and prompted
// baselines:
//
//	backend, err := openai.Open(ctx, &openai.Options{BaseURL: "http://localhost:11434/v1"}) // Ollama
//	model := art.NewModel("baseline", &art.ModelOptions{Base: "qwen3:8b", Frozen: true})
//	err = model.Register(ctx, backend)
//	reply, err := model.Chat(ctx, art.NewTrajectory(art.User("Hello?")), nil)
//
// Package hosted describes what is sent again, how costs are counted, and what the errors are.
//
// # Requests
//
// OpenAI itself gets max_completion_tokens, and temperature and top_p only when they are not 1, because some of its
// models refuse them. TopK and TemplateArgs are an [art.ErrUnsupported] there. Other servers get max_tokens,
// temperature and top_p, as some have defaults of their own for what is left out, and vLLM's top_k and
// chat_template_kwargs when they are set. All get the seed. Extra of the [Options] changes what a server does not
// like: {"seed": null}. A ResponseFormat is sent as response_format; expressions and choices are vLLM's
// structured_outputs, and an [art.ErrUnsupported] for OpenAI.
//
// Messages are sent as they are. Those of the assistant lose the unknown fields that servers return and do not
// accept, and for OpenAI the reasoning.
//
// # Samples
//
// A server with vLLM's extensions returns tokens and logprobs when Extra is [ExactTokens]. The replies of a model
// that is not Frozen then have an [art.Sample] when it is exact: at temperature 1 without top-p and top-k, with as
// many logprobs as tokens. Its step is 0.
//
// # Context lengths
//
// For OpenAI's models and gpt-oss prompts are counted before they are sent: their texts in the encoding of the
// model, 3 tokens more for each message and for the reply, and the names and descriptions of tools. Parameters of
// tools, images and what the service adds are left out: the count is a lower bound.
package openai

import (
	"context"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
	"github.com/goart-dev/art/tokenizer/openai"
)

// defaultURL is where OpenAI's own models are.
const defaultURL = "https://api.openai.com/v1"

// ExactTokens are the fields of Extra that make vLLM, and the server of this module, return the tokens of prompt and
// reply, and sample from the model's distribution as it is.
const ExactTokens = `{"return_token_ids": true, "logprobs": true, "top_k": -1, "min_p": 0, "repetition_penalty": 1}`

// Options are those of all backends of hosted models.
type Options = hosted.Options

// Open prepares the connection; nothing is sent before the first call. opts may be nil: OpenAI.
//
// BaseURL includes the version: http://localhost:8000/v1. Its default is the environment variable OPENAI_BASE_URL,
// and then https://api.openai.com/v1. The default of Key is OPENAI_API_KEY for OpenAI and for OPENAI_BASE_URL,
// OPENROUTER_API_KEY for openrouter.ai, and none for other hosts. That of Prices is [DefaultPrices] for OpenAI, and
// none for other hosts.
func Open(_ context.Context, opts *Options) (*hosted.Backend, error) {
	about := hosted.About{
		Name: "openai", BaseURL: defaultURL, URLVariable: "OPENAI_BASE_URL", Prices: DefaultPrices(),
		KeyVariables: map[string]string{"api.openai.com": "OPENAI_API_KEY", "openrouter.ai": "OPENROUTER_API_KEY"},
	}
	return hosted.New(about, opts, func(c *hosted.Connection) (hosted.Service, error) { return &service{c}, nil })
}

// service implements [hosted.Service] and [hosted.TokenCounter].
type service struct{ *hosted.Connection }

// DefaultPrices returns list prices of OpenAI's models in US dollars, of June 2026. Prices change, and discounts and
// surcharges (batches, priority, long contexts) are not in them: hand in your own where money matters.
func DefaultPrices() hosted.Prices {
	return hosted.Prices{
		"gpt-4o":       {Prompt: 2.5, CachedPrompt: 1.25, Completion: 10},
		"gpt-4o-mini":  {Prompt: 0.15, CachedPrompt: 0.075, Completion: 0.6},
		"gpt-4.1":      {Prompt: 2, CachedPrompt: 0.5, Completion: 8},
		"gpt-4.1-mini": {Prompt: 0.4, CachedPrompt: 0.1, Completion: 1.6},
		"gpt-4.1-nano": {Prompt: 0.1, CachedPrompt: 0.025, Completion: 0.4},
		"o3":           {Prompt: 2, CachedPrompt: 0.5, Completion: 8},
		"o4-mini":      {Prompt: 1.1, CachedPrompt: 0.275, Completion: 4.4},
		"gpt-5":        {Prompt: 1.25, CachedPrompt: 0.125, Completion: 10},
		"gpt-5-mini":   {Prompt: 0.25, CachedPrompt: 0.025, Completion: 2},
		"gpt-5-nano":   {Prompt: 0.05, CachedPrompt: 0.005, Completion: 0.4},
		"gpt-5.4":      {Prompt: 2.5, CachedPrompt: 0.25, Completion: 15},
		"gpt-5.4-mini": {Prompt: 0.75, CachedPrompt: 0.075, Completion: 4.5},
		"gpt-5.4-nano": {Prompt: 0.2, CachedPrompt: 0.02, Completion: 1.25},
		"gpt-5.5":      {Prompt: 5, CachedPrompt: 0.5, Completion: 30},
	}
}

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

func (*service) ContextLength(model string) int {
	model = plain(model)
	n, _ := longest(contexts, func(key string) bool { return model == key || strings.HasPrefix(model, key+"-") })
	return n
}

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
