package openai

import (
	"github.com/goart-dev/art"
)

// history returns the conversation of a request. With tool_choice "none" the model does not see the tools.
func (r *Request) history() *art.History {
	h := &art.History{Messages: r.Messages, Tools: r.Tools}
	if r.ToolChoice == "none" {
		h.Tools = nil
	}
	return h
}

// options returns the sampling of a request. What it leaves out falls back to the defaults of the model.
func (r *Request) options() *art.ChatOptions {
	opts := &art.ChatOptions{
		Temperature: r.Temperature,
		TopP:        r.TopP,
		TopK:        r.TopK,
		MaxTokens:   r.MaxTokens,
		Stop:        r.Stop,
		Seed:        (*uint64)(r.Seed),

		TemplateArgs: r.ChatTemplateKwargs,
	}
	if r.TopK != nil && *r.TopK == -1 {
		opts.TopK = new(int)
	}
	if opts.MaxTokens == nil {
		opts.MaxTokens = r.MaxCompletionTokens
	}
	return opts
}
