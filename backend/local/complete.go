package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/sampling"
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
func (b *Backend) newChat(ctx context.Context, op string, m *art.Model, req *art.ChatRequest) (*chatCompletion, error) {
	e, err := b.entry(op, m)
	if err != nil {
		return nil, err
	}
	template, prompt, err := e.prompt(ctx, op, req)
	if err != nil {
		return nil, err
	}
	if err := e.base.checkSettings(op, req.Settings); err != nil {
		return nil, err
	}
	c := &chatCompletion{b.newCompletion(ctx, e, m, "chatcmpl", prompt, req.Settings), template, req.Messages, req.Tools}
	mask, err := e.grammars.chat(op, template, prompt, req)
	c.mask = e.base.limited(mask, req.Settings)
	return c, err
}

// prompt renders the prompt of a request, with the template of its arguments.
func (e *entry) prompt(ctx context.Context, op string, req *art.ChatRequest) (*chat.Template, []int32, error) {
	template, err := e.template.With(chat.Options{Args: req.TemplateArgs})
	if err != nil {
		return nil, nil, invalid(op, "", "%w", err)
	}
	prompt, err := template.PromptContext(ctx, req.Messages, req.Tools)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, nil, promptError(err)
	}
	return template, prompt, nil
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

// checkSettings refuses tokens that the model does not have.
func (s *base) checkSettings(op string, settings art.Sampling) error {
	limit := s.config.VocabSize
	bias := slices.Sorted(maps.Keys(settings.LogitBias))
	for _, id := range slices.Concat(settings.StopTokenIDs, settings.AllowedTokenIDs, bias) {
		if id < 0 || int(id) >= limit {
			return invalid(op, ownIDs, "token %d of StopTokenIDs, AllowedTokenIDs or LogitBias is not in the vocabulary of %d",
				id, limit)
		}
	}
	return nil
}

// request returns the engine's form of the request, without stop strings.
func (c *completion) request() engine.Request {
	s := c.settings
	return engine.Request{
		Prompt: c.prompt, End: slices.Concat(c.end, s.StopTokenIDs), MaxTokens: s.MaxTokens, MinTokens: s.MinTokens,
		Top: s.TopLogprobs, Seed: s.Seed, Adapter: c.now.adapter, Mask: c.mask,
		Sampling: sampling.Settings{
			Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MinP: s.MinP,
			Penalties: sampling.Penalties{
				Bias: s.LogitBias, Repetition: s.RepetitionPenalty, Presence: s.PresencePenalty, Frequency: s.FrequencyPenalty,
			},
		},
	}
}

// addPromptLogprobs scores the prompt if the request asks for its logprobs.
func (c *completion) addPromptLogprobs(ctx context.Context, r *art.ChatResponse) error {
	if c.settings.PromptLogprobs == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	top, err := engine.ScoreTop(engine.Scored{
		Device: c.backend.device, Config: c.base.config, Params: c.base.params, Adapter: c.now.adapter, IDs: c.prompt,
	}, *c.settings.PromptLogprobs)
	if err != nil {
		return &art.Error{Op: "prompt logprobs", Err: deviceError(err)}
	}
	r.PromptLogprobs = append([][]art.TokenLogprob{nil}, candidates(top)...)
	return nil
}

// candidates converts lists of tokens; nil of nil.
func candidates(list [][]engine.Candidate) [][]art.TokenLogprob {
	if list == nil {
		return nil
	}
	out := make([][]art.TokenLogprob, len(list))
	for i, at := range list {
		for _, c := range at {
			out[i] = append(out[i], art.TokenLogprob(c))
		}
	}
	return out
}

var _ driver.Streamer = (*Backend)(nil)

// Stream is [Backend.Complete] that calls piece with what each token adds to the reply. A piece that takes long stalls
// nobody, not even this reply: the next one has all that was sampled meanwhile.
func (b *Backend) Stream(
	ctx context.Context, m *art.Model, req *art.ChatRequest, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	c, err := b.newChat(ctx, "stream", m, req)
	if err != nil {
		return nil, err
	}
	reader := c.read()
	out := c.pieces(piece, c.now.adapter != nil, func(id int32, p *art.Piece) {
		delta := reader.Add(id)
		p.Reasoning, p.Content = p.Reasoning+delta.Reasoning, p.Content+delta.Content
		p.ToolCalls = append(p.ToolCalls, calls(delta)...)
	})
	result, err := out.run(ctx, c.request())
	if err != nil {
		return nil, err
	}
	last, _, _ := reader.Close() // what is malformed is in the response
	p := art.Piece{Reasoning: last.Reasoning, Content: last.Content, ToolCalls: calls(last)}
	if err := out.last(p); err != nil {
		return nil, err
	}
	return c.response(ctx, result)
}

// calls returns the calls of a delta, which are whole: the reader does not give them early.
func calls(d chat.Delta) (out []art.ToolCall) {
	for _, c := range d.ToolCalls {
		out = append(out, art.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return out
}

// pieces hands out a reply.
type pieces struct {
	*completion
	to     func(art.Piece) error
	tokens bool                         // pieces have ids and logprobs
	text   func(id int32, p *art.Piece) // adds the text of a token
	begun  bool
	failed error // of to
}

func (c *completion) pieces(to func(art.Piece) error, tokens bool, text func(int32, *art.Piece)) *pieces {
	return &pieces{completion: c, to: to, tokens: tokens, text: text}
}

// run samples the reply. An error of to is returned as it is.
func (o *pieces) run(ctx context.Context, r engine.Request) (*engine.Result, error) {
	result, err := o.base.engine.Stream(ctx, r, o.add)
	if o.failed != nil {
		return nil, o.failed
	}
	if err != nil {
		return nil, o.base.completionError(err)
	}
	return result, nil
}

// add hands out tokens.
func (o *pieces) add(tokens []engine.Token) error {
	var p art.Piece
	for _, t := range tokens {
		o.text(t.ID, &p)
		if !o.tokens {
			continue
		}
		p.IDs, p.Logprobs = append(p.IDs, t.ID), append(p.Logprobs, t.Logprob)
		if t.Top != nil {
			p.TopLogprobs = append(p.TopLogprobs, candidates([][]engine.Candidate{t.Top})...)
		}
	}
	o.failed = o.send(p)
	return o.failed
}

// last hands out the text that was held back, if there is any.
func (o *pieces) last(p art.Piece) error {
	if p.Reasoning == "" && p.Content == "" && len(p.ToolCalls) == 0 {
		return nil
	}
	return o.send(p)
}

// send hands out a piece. The first one has the prompt.
func (o *pieces) send(p art.Piece) error {
	p.ID, p.Model = o.id, o.model
	if o.tokens && !o.begun {
		p.PromptIDs = o.prompt
	}
	o.begun = true
	return o.to(p)
}
