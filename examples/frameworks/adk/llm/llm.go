// Package llm makes a model of art a [model.LLM] of Google's Agent Development Kit, in process: no HTTP, no key. What
// an agent says within [art.Record] is recorded with its exact tokens, like that of any other client.
package llm

import (
	"context"
	"fmt"
	"iter"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

	"github.com/goart-dev/art"
)

// LLM answers the requests of an agent. It is safe for concurrent use.
type LLM struct {
	model *art.Model
	opts  art.ChatOptions
}

var _ model.LLM = (*LLM)(nil)

// New returns the model m, which must be registered when it is first called. opts take precedence over what the agent
// asks for, and may be nil.
func New(m *art.Model, opts *art.ChatOptions) *LLM {
	l := &LLM{model: m}
	if opts != nil {
		l.opts = *opts
	}
	return l
}

// Name implements [model.LLM].
func (l *LLM) Name() string { return l.model.Name() }

// GenerateContent implements [model.LLM]. A stream is the whole reply at once. Contents that a model of text cannot
// read, such as images, and settings that it does not have, such as a response schema, are errors.
func (l *LLM) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		yield(l.generate(ctx, req))
	}
}

// generate answers a request.
func (l *LLM) generate(ctx context.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
	h, err := history(req)
	if err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	opts, err := l.settings(req.Config)
	if err != nil {
		return nil, fmt.Errorf("llm: %w", err)
	}
	response, err := l.model.Complete(ctx, h, opts)
	if err != nil {
		return nil, err
	}
	return answer(response)
}

// settings are those of the request, where New was given no others.
func (l *LLM) settings(c *genai.GenerateContentConfig) (*art.ChatOptions, error) {
	opts := l.opts
	if c == nil {
		return &opts, nil
	}
	if c.ResponseSchema != nil || c.ResponseJsonSchema != nil || c.CandidateCount > 1 || c.CachedContent != "" {
		return nil, fmt.Errorf("%w: response schemas, several candidates and cached contents are not supported",
			art.ErrUnsupported)
	}
	if opts.Temperature == nil && c.Temperature != nil {
		opts.Temperature = new(float64(*c.Temperature))
	}
	if opts.TopP == nil && c.TopP != nil {
		opts.TopP = new(float64(*c.TopP))
	}
	if opts.TopK == nil && c.TopK != nil {
		opts.TopK = new(int(*c.TopK))
	}
	if opts.MaxTokens == nil && c.MaxOutputTokens > 0 {
		opts.MaxTokens = new(int(c.MaxOutputTokens))
	}
	if opts.Stop == nil {
		opts.Stop = c.StopSequences
	}
	return &opts, nil
}
