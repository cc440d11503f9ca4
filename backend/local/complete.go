package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/tokenizer/chat"
)

// Complete answers with the newest step of m. It waits for a free slot. It returns [art.ErrContextLength] when the
// prompt leaves no room for a reply, [art.ErrInvalid] when the template refuses the messages, and the error of ctx.
func (b *Backend) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	e, err := b.entry("complete", m)
	if err != nil {
		return nil, err
	}
	template, err := e.template.With(chat.Options{Args: req.TemplateArgs})
	if err != nil {
		return nil, &art.Error{Op: "complete", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
	}
	prompt, err := template.PromptContext(ctx, req.Messages, req.Tools)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, promptError(err)
	}
	now, s := e.serving.Load(), req.Settings
	result, err := e.base.engine.Complete(ctx, e.base.request(prompt, template.EndOfTurn(), s, now.adapter))
	if err != nil {
		return nil, e.base.completionError(err)
	}
	message, malformed := e.base.message(template, prompt, result, req)
	finish := finishOf(result.Reason, message)
	if now.adapter != nil {
		message.Sample = &art.Sample{
			PromptIDs: prompt, IDs: result.IDs, Logprobs: result.Logprobs, Sampled: result.Sampled, Settings: s, Step: now.step,
			Finish: finish,
		}
	}
	return &art.ChatResponse{
		ID: fmt.Sprintf("chatcmpl-%d", b.calls.Add(1)), Model: fmt.Sprintf("%s@%d", m.Name(), now.step),
		Message: message, Malformed: malformed, Finish: finish,
		Usage: art.Usage{PromptTokens: len(prompt), CachedTokens: result.Cached, CompletionTokens: len(result.IDs)},
	}, nil
}

// request returns the engine's form of a request.
func (s *base) request(prompt, end []int32, settings art.Sampling, adapter *engine.Adapter) engine.Request {
	return engine.Request{
		Prompt: prompt, End: end, Stop: s.stopper(settings.Stop),
		MaxTokens: settings.MaxTokens, Seed: settings.Seed, Adapter: adapter,
		Sampling: model.Sampling{Temperature: settings.Temperature, TopP: settings.TopP, TopK: settings.TopK},
	}
}

// stopper returns what ends a reply at a stop string, nil if there are none.
func (s *base) stopper(stop []string) engine.Stopper {
	if len(stop) == 0 {
		return nil
	}
	return engine.StopText(s.tokenizer.Stream(true, stop...).Add)
}

// message parses a reply, without a stop text and what follows it. The error is about tool calls that cannot be parsed.
func (s *base) message(
	template *chat.Template, prompt []int32, r *engine.Result, req *art.ChatRequest,
) (art.Message, error) {
	if r.Reason != engine.Stopped {
		return template.Parse(prompt, r.IDs, req.Tools)
	}
	return art.Assistant(s.text(r, req.Settings.Stop)), nil
}

func finishOf(r engine.Reason, m art.Message) string {
	switch {
	case r == engine.Length:
		return art.FinishLength
	case r == engine.End && len(m.ToolCalls) > 0:
		return art.FinishToolCalls
	}
	return art.FinishStop
}

// completionError translates an error of the engine into one of art.
func (s *base) completionError(err error) error {
	switch {
	case errors.Is(err, engine.ErrTooLong):
		return &art.Error{Op: "complete", Err: fmt.Errorf("%w: %w", art.ErrContextLength, err), Hint: s.contextHint()}
	case errors.Is(err, engine.ErrClosed):
		return &art.Error{Op: "complete", Err: art.ErrClosed}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &art.Error{Op: "complete", Err: err}
}

// contextHint says what to do about a prompt that is too long. The context cannot exceed that of the model.
func (s *base) contextHint() string {
	limit := s.config.MaxPositions
	if s.engine.Context() >= limit {
		return fmt.Sprintf("send fewer or shorter messages: %d tokens are the limit of the model", limit)
	}
	return fmt.Sprintf("send fewer or shorter messages, or raise Context of local.Options, up to the model's limit of %d",
		limit)
}
