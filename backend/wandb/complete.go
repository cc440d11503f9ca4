package wandb

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/internal/callid"
	"github.com/goart-dev/art/internal/wandbwire"
)

// stepKey is the context key of the step that answers for a model.
type stepKey struct{ m *art.Model }

// PinStep returns what makes a context with which a stored step answers.
func (b *Backend) PinStep(
	ctx context.Context, m *art.Model, step int,
) (func(context.Context) context.Context, error) {
	steps, err := b.Checkpoints(ctx, m)
	if err != nil {
		return nil, err
	}
	for _, stored := range steps {
		if stored == step {
			return func(ctx context.Context) context.Context { return context.WithValue(ctx, stepKey{m}, step) }, nil
		}
	}
	return nil, &art.Error{Op: "pin step", Err: fmt.Errorf("%w: step %d has no checkpoint", art.ErrInvalid, step)}
}

// Complete asks the service, with the name of the step. The reply has a Sample when the service tells its tokens: ours
// does, with all that training needs, and so does a vLLM with return_token_ids.
func (b *Backend) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	e, err := b.entry("complete", m)
	if err != nil {
		return nil, err
	}
	step := int(e.step.Load())
	if pinned, ok := ctx.Value(stepKey{m}).(int); ok {
		step = pinned
	}
	body, err := newRequest(e.artifact(step), req)
	if err != nil {
		return nil, err
	}
	if e.base == "" {
		body["logprobs"], body["return_token_ids"] = true, true
	}
	var answer wandbwire.Completion
	err = b.do(ctx, &call{method: http.MethodPost, path: "chat/completions", body: body, out: &answer})
	if err != nil {
		return nil, err
	}
	return e.response(m, &answer, req, step)
}

// response converts an answer of a step.
func (e *entry) response(
	m *art.Model, answer *wandbwire.Completion, req *art.ChatRequest, step int,
) (*art.ChatResponse, error) {
	out, err := answer.Response(req.Settings, step)
	if err != nil {
		return nil, &art.Error{Op: "complete", Err: fmt.Errorf("%w: %w", ErrService, err),
			Hint: "the service answers what cannot be trained on"}
	}
	callid.Complete(out.Message.ToolCalls, req)
	if e.base != "" {
		out.Message.Sample = nil
	}
	if s := out.Message.Sample; s != nil {
		step = s.Step
	}
	out.Model = fmt.Sprintf("%s@%d", m.Name(), step)
	return out, nil
}

// newRequest is the body of a request for a reply: the settings have the names that OpenAI's API and vLLM's have.
func newRequest(model string, req *art.ChatRequest) (map[string]any, error) {
	s := req.Settings
	if s.ResponseFormat != nil || s.ToolChoice != nil || s.TopLogprobs > 0 || s.PromptLogprobs != nil {
		return nil, &art.Error{
			Op: "complete", Hint: "leave them out of the ChatOptions",
			Err: fmt.Errorf("%w: ResponseFormat, ToolChoice, TopLogprobs or PromptLogprobs", art.ErrUnsupported),
		}
	}
	body := map[string]any{}
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &body)
	}
	if err != nil {
		return nil, &art.Error{Op: "complete", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
	}
	if s.MaxTokens == 0 {
		delete(body, "max_tokens")
	}
	if s.TopK == 0 {
		delete(body, "top_k")
	}
	body["seed"] = s.Seed & math.MaxInt64
	body["model"], body["messages"] = model, outgoing(req.Messages)
	if len(req.Tools) > 0 {
		body["tools"] = req.Tools
	}
	if len(req.TemplateArgs) > 0 {
		body["chat_template_kwargs"] = req.TemplateArgs
	}
	return body, nil
}

// outgoing returns messages as they are sent: replies lose the unknown fields that services return and do not accept.
func outgoing(messages []art.Message) []art.Message {
	out := make([]art.Message, len(messages))
	for i, m := range messages {
		if m.Role == art.RoleAssistant {
			m = art.Message{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, ToolCalls: m.ToolCalls, Name: m.Name}
		}
		out[i] = m
	}
	return out
}

// Handler serves all registered models under their names; see [server.Handler].
func (b *Backend) Handler(opts *art.HandlerOptions) (http.Handler, error) {
	return server.Handler(b.all, &server.Config{Logger: b.opts.Logger}, opts)
}

// Transport answers as m, whatever model a request names.
func (b *Backend) Transport(m *art.Model) http.RoundTripper {
	only := func() []*art.Model { return []*art.Model{m} }
	return server.Transport(server.Routes(only, &server.Config{Logger: b.opts.Logger}), m.Name())
}

func (b *Backend) all() []*art.Model {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]*art.Model{}, b.order...)
}
