package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/tokenizer/chat"
)

// Complete answers with the newest step of m. It waits for a free slot. It returns [art.ErrContextLength] when the
// prompt leaves no room for a reply, [art.ErrInvalid] when the template refuses the messages, [art.ErrDevice] when the
// device fails, and the error of ctx.
func (b *Backend) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	c, err := b.newChat(ctx, "complete", m, req)
	if err != nil {
		return nil, err
	}
	result, err := c.base.engine.Complete(ctx, c.request())
	if err != nil {
		return nil, c.base.completionError(err)
	}
	return c.response(ctx, result)
}

// completion is a call that samples a reply.
type completion struct {
	*entry
	backend  *Backend
	now      *serving // the step that answers
	id       string   // of the response
	model    string   // name@step
	prompt   []int32
	end      []int32 // ids that end the reply
	settings art.Sampling
	mask     engine.Mask // nil without a grammar and limits
}

// newCompletion starts a completion by the newest step, or the one that ctx is pinned to. kind begins the id of the
// response.
func (b *Backend) newCompletion(
	ctx context.Context, e *entry, m *art.Model, kind string, prompt []int32, s art.Sampling,
) completion {
	now := e.served(ctx)
	c := completion{
		entry: e, backend: b, now: now, prompt: prompt, settings: s,
		id: fmt.Sprintf("%s-%d", kind, b.calls.Add(1)), model: fmt.Sprintf("%s@%d", m.Name(), now.step),
	}
	if !s.IgnoreEOS {
		c.end = e.template.EndOfTurn()
	}
	return c
}

// chatCompletion is a [completion] of a conversation.
type chatCompletion struct {
	completion
	template *chat.Template
	messages []art.Message
	tools    []art.Tool
}

// newChat renders the prompt of a request.
func (b *Backend) newChat(
	ctx context.Context, op string, m *art.Model, req *art.ChatRequest,
) (*chatCompletion, error) {
	e, err := b.entry(op, m)
	if err != nil {
		return nil, err
	}
	template, err := e.template.With(chat.Options{Args: req.TemplateArgs})
	if err != nil {
		return nil, &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
	}
	prompt, err := template.PromptContext(ctx, req.Messages, req.Tools)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, promptError(err)
	}
	if err := e.base.checkSettings(op, req.Settings); err != nil {
		return nil, err
	}
	c := &chatCompletion{b.newCompletion(ctx, e, m, "chatcmpl", prompt, req.Settings), template, req.Messages, req.Tools}
	mask, err := e.grammars.chat(op, template, prompt, req)
	c.mask = e.base.limited(mask, req.Settings)
	return c, err
}

// request returns the engine's form of the request.
func (c *chatCompletion) request() engine.Request {
	r := c.completion.request()
	if len(c.settings.Stop) > 0 {
		reader := c.read()
		r.Stop = engine.StopText(func(id int32) (string, bool) {
			reader.Add(id)
			return "", reader.Stopped() != ""
		})
	}
	return r
}

// read begins to parse the reply.
func (c *chatCompletion) read() *chat.ReplyReader {
	s := c.settings
	return c.template.Read(c.prompt, c.tools).Answering(c.messages, s.Seed).Until(chat.Ends{
		IDs: s.StopTokenIDs, Text: s.Stop, After: s.MinTokens, PastTurn: s.IgnoreEOS,
	})
}

// response converts the reply, and computes the logprobs of the prompt if they are wanted.
func (c *chatCompletion) response(ctx context.Context, result *engine.Result) (*art.ChatResponse, error) {
	reader := c.read()
	for _, id := range result.IDs {
		reader.Add(id)
	}
	_, message, malformed := reader.Close()
	finish := finishOf(result.Reason, message)
	if c.now.adapter != nil {
		message.Sample = c.sample(result, finish)
	}
	r := c.answer(result, message, finish)
	r.Malformed, r.Stopped = malformed, reader.Stopped()
	return r, c.addPromptLogprobs(ctx, r)
}

// sample returns the record of a reply.
func (c *completion) sample(result *engine.Result, finish string) *art.Sample {
	s := c.settings
	s.TopLogprobs, s.PromptLogprobs = 0, nil
	return &art.Sample{
		PromptIDs: c.prompt, IDs: result.IDs, Logprobs: result.Logprobs, Sampled: result.Sampled, Forced: result.Forced,
		Settings: s, Step: c.now.step, Finish: finish,
	}
}

// answer returns the response with a message.
func (c *completion) answer(result *engine.Result, message art.Message, finish string) *art.ChatResponse {
	return &art.ChatResponse{
		ID: c.id, Model: c.model, Message: message, Finish: finish, TopLogprobs: candidates(result.Top),
		Usage: art.Usage{PromptTokens: len(c.prompt), CachedTokens: result.Cached, CompletionTokens: len(result.IDs)},
	}
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
	case errors.Is(err, engine.ErrBusy):
		err = fmt.Errorf("%w: %w", art.ErrBusy, err)
		return &art.Error{Op: "complete", Err: err, Hint: "try again later, or raise Queue of local.Options"}
	case errors.Is(err, engine.ErrClosed):
		return &art.Error{Op: "complete", Err: art.ErrClosed}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return &art.Error{Op: "complete", Err: deviceError(err)}
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
