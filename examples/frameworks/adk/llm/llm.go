// Package llm makes a model of art a [model.LLM] of Google's Agent Development Kit, in process: no HTTP, no key. What
// an agent says within [art.Record] is recorded with its exact tokens, like that of any other client.
package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

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
	return answer(response), nil
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

func history(req *model.LLMRequest) (*art.History, error) {
	h := &art.History{}
	if c := req.Config; c != nil {
		if c.SystemInstruction != nil {
			text, err := textOf(c.SystemInstruction.Parts)
			if err != nil {
				return nil, err
			}
			h.Messages = append(h.Messages, art.System(text))
		}
		for _, t := range c.Tools {
			tools, err := toolsOf(t)
			if err != nil {
				return nil, err
			}
			h.Tools = append(h.Tools, tools...)
		}
	}
	for _, c := range req.Contents {
		messages, err := messagesOf(c)
		if err != nil {
			return nil, err
		}
		h.Messages = append(h.Messages, messages...)
	}
	return h, nil
}

func toolsOf(t *genai.Tool) (tools []art.Tool, err error) {
	if len(t.FunctionDeclarations) == 0 {
		return nil, fmt.Errorf("%w: a tool without functions, which Google's servers carry out", art.ErrUnsupported)
	}
	for _, f := range t.FunctionDeclarations {
		schema := f.ParametersJsonSchema
		if schema == nil && f.Parameters != nil {
			schema = jsonSchema(f.Parameters)
		}
		parameters := json.RawMessage(`{"type":"object","properties":{}}`)
		if schema != nil {
			if parameters, err = json.Marshal(schema); err != nil {
				return nil, fmt.Errorf("the schema of %s: %w", f.Name, err)
			}
		}
		tools = append(tools, art.Tool{Name: f.Name, Description: f.Description, Parameters: parameters})
	}
	return tools, nil
}

// jsonSchema converts Google's form of a schema, whose types are in capitals.
func jsonSchema(s *genai.Schema) map[string]any {
	object := map[string]any{}
	if s.Type != "" {
		object["type"] = strings.ToLower(string(s.Type))
	}
	if s.Description != "" {
		object["description"] = s.Description
	}
	if len(s.Enum) > 0 {
		object["enum"] = s.Enum
	}
	if s.Items != nil {
		object["items"] = jsonSchema(s.Items)
	}
	if len(s.Properties) > 0 {
		properties := map[string]any{}
		for name, p := range s.Properties {
			properties[name] = jsonSchema(p)
		}
		object["properties"] = properties
	}
	if len(s.Required) > 0 {
		object["required"] = s.Required
	}
	return object
}

// messagesOf converts a content: results of tools are messages of their own.
func messagesOf(c *genai.Content) (messages []art.Message, err error) {
	var others []*genai.Part
	var calls []art.ToolCall
	for _, p := range c.Parts {
		switch {
		case p.FunctionResponse != nil:
			text, err := resultOf(p.FunctionResponse.Response)
			if err != nil {
				return nil, err
			}
			messages = append(messages, art.ToolResult(p.FunctionResponse.ID, text))
		case p.FunctionCall != nil:
			call, err := callOf(p.FunctionCall)
			if err != nil {
				return nil, err
			}
			calls = append(calls, call)
		default:
			others = append(others, p)
		}
	}
	if len(others) == 0 && len(calls) == 0 {
		return messages, nil
	}
	text, err := textOf(others)
	if err != nil {
		return nil, err
	}
	message := art.User(text)
	if c.Role == genai.RoleModel {
		message = art.Message{Role: art.RoleAssistant, Content: text, ToolCalls: calls}
	}
	return append(messages, message), nil
}

// callOf converts a call. One whose arguments could not be read has their text: see [answer].
func callOf(c *genai.FunctionCall) (art.ToolCall, error) {
	if text, ok := c.Args[unreadable].(string); ok && len(c.Args) == 1 {
		return art.ToolCall{ID: c.ID, Name: c.Name, Arguments: text}, nil
	}
	args := c.Args
	if args == nil {
		args = map[string]any{}
	}
	text, err := json.Marshal(args)
	return art.ToolCall{ID: c.ID, Name: c.Name, Arguments: string(text)}, err
}

// textOf joins texts. Thoughts are left out, as models do not read those of earlier turns.
func textOf(parts []*genai.Part) (string, error) {
	var b strings.Builder
	for _, p := range parts {
		switch {
		case p.Thought:
		case p.InlineData != nil, p.FileData != nil, p.ExecutableCode != nil, p.CodeExecutionResult != nil:
			return "", fmt.Errorf("%w: a part of a content is no text", art.ErrUnsupported)
		default:
			b.WriteString(p.Text)
		}
	}
	return b.String(), nil
}

// resultOf is what a model reads of the result of a function: a text as it is, an error as such, anything else as JSON.
func resultOf(response map[string]any) (string, error) {
	if len(response) == 1 {
		for _, key := range []string{"result", "output"} {
			if text, ok := response[key].(string); ok {
				return text, nil
			}
		}
		switch v := response["error"].(type) {
		case string:
			return "Error: " + v, nil
		case error:
			return "Error: " + v.Error(), nil
		}
	}
	text, err := json.Marshal(response)
	return string(text), err
}

// unreadable is the argument of a call whose arguments the model wrote are no JSON object. No function has it, so that
// the agent tells the model.
const unreadable = "unreadable arguments"

var finishes = map[string]genai.FinishReason{
	art.FinishStop: genai.FinishReasonStop, art.FinishToolCalls: genai.FinishReasonStop,
	art.FinishLength: genai.FinishReasonMaxTokens,
}

func answer(r *art.ChatResponse) *model.LLMResponse {
	content := &genai.Content{Role: genai.RoleModel}
	if r.Message.Reasoning != "" {
		content.Parts = append(content.Parts, &genai.Part{Text: r.Message.Reasoning, Thought: true})
	}
	if r.Message.Content != "" || len(r.Message.ToolCalls) == 0 {
		content.Parts = append(content.Parts, genai.NewPartFromText(r.Message.Content))
	}
	for _, c := range r.Message.ToolCalls {
		var args map[string]any
		d := json.NewDecoder(strings.NewReader(c.Arguments))
		d.UseNumber() // numbers stay as they were written
		if err := d.Decode(&args); err != nil || args == nil || d.More() {
			args = map[string]any{unreadable: c.Arguments}
		}
		content.Parts = append(content.Parts,
			&genai.Part{FunctionCall: &genai.FunctionCall{ID: c.ID, Name: c.Name, Args: args}})
	}
	response := &model.LLMResponse{
		Content: content, ModelVersion: r.Model, FinishReason: finishes[r.Finish], TurnComplete: true,
		UsageMetadata: &genai.GenerateContentResponseUsageMetadata{
			PromptTokenCount: int32(r.Usage.PromptTokens), CandidatesTokenCount: int32(r.Usage.CompletionTokens),
			TotalTokenCount: int32(r.Usage.PromptTokens + r.Usage.CompletionTokens),
		},
	}
	if sample := r.Message.Sample; sample != nil && len(sample.Logprobs) > 0 {
		sum := 0.0
		for _, p := range sample.Logprobs {
			sum += float64(p)
		}
		response.AvgLogprobs = sum / float64(len(sample.Logprobs))
	}
	return response
}
