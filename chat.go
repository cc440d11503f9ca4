package art

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// Chat lets the model continue t: it sends the messages and tools of t's main history, appends the reply, and returns
// a copy of it. opts may be nil. One trajectory is not for concurrent calls; different ones are.
//
// Errors are those of [Model.Complete]; t is unchanged then.
func (m *Model) Chat(ctx context.Context, t *Trajectory, opts *ChatOptions) (*Message, error) {
	if t == nil {
		return nil, problems{"trajectory is nil"}.err("chat", "start one with NewTrajectory")
	}
	response, err := m.Complete(ctx, &t.History, opts)
	if err != nil {
		return nil, err
	}
	t.Add(response.Message)
	return &response.Message, nil
}

// Complete asks the model for one reply to h, which it does not change. opts may be nil. The reply is recorded when ctx
// comes from [Record] or a [Recorder].
//
// The seed of the call is opts.Seed, else the model's, else derived from the run's seed, the step and the position of
// the call in its gather; see [GatherOptions].
//
// It returns [ErrNotRegistered], [ErrInvalid] for invalid messages or options, [ErrRecordingEnded] when the [Recorder]
// of ctx was closed meanwhile, and the errors of the backend.
func (m *Model) Complete(ctx context.Context, h *History, opts *ChatOptions) (*ChatResponse, error) {
	return only(m.CompleteN(ctx, h, 1, opts))
}

// only returns the one reply to a request.
func only(replies []*ChatResponse, err error) (*ChatResponse, error) {
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

func (m *Model) request(ctx context.Context, h *History, opts *ChatOptions) (*ChatRequest, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	settings, err := m.settings(ctx, opts)
	if err != nil {
		return nil, err
	}
	tools, err := settings.resolveTools(h.Tools)
	if err != nil {
		return nil, err
	}
	args, err := opts.templateArgs(&m.opts.Chat)
	if err != nil {
		return nil, err
	}
	// Copies, because the backend and the recorder may keep the request while the caller edits its history.
	return &ChatRequest{
		Messages: cloneMessages(h.Messages), Tools: cloneTools(tools), Settings: settings, TemplateArgs: args,
	}, nil
}

func (m *Model) settings(ctx context.Context, opts *ChatOptions) (Sampling, error) {
	settings := opts.settings(&m.opts.Chat)
	if err := settings.Validate(); err != nil {
		return Sampling{}, err
	}
	if !opts.hasSeed() && !m.opts.Chat.hasSeed() {
		settings.Seed = m.callSeed(ctx)
	}
	return settings, nil
}

// validate checks that there is something to reply to.
func (h *History) validate() error {
	var p problems
	p.check(h != nil && len(h.Messages) > 0, "no messages")
	if h != nil {
		for i := range h.Messages {
			p.check(h.Messages[i].Role != "", "messages[%d].role is empty", i)
		}
	}
	return p.err("complete", "make messages with System, User, Assistant and ToolResult")
}

// Validate returns an [ErrInvalid] that lists every value outside of its range: Temperature finite and not negative,
// 0 < TopP <= 1, TopK and MaxTokens not negative, no empty Stop string; and those that [ChatOptions] gives for the
// other fields.
func (s Sampling) Validate() error {
	var p problems
	p.check(finite(s.Temperature) && s.Temperature >= 0, "temperature is %v, want a finite number >= 0", s.Temperature)
	p.check(s.TopP > 0 && s.TopP <= 1, "top_p is %v, want 0 < top_p <= 1", s.TopP)
	p.check(s.TopK >= 0, "top_k is %d, want >= 0", s.TopK)
	p.check(s.MaxTokens >= 0, "max_tokens is %d, want >= 0", s.MaxTokens)
	p.check(!slices.Contains(s.Stop, ""), "a stop string is empty")
	p.check(s.MinP >= 0 && s.MinP <= 1, "min_p is %v, want 0 <= min_p <= 1", s.MinP)
	r := s.RepetitionPenalty
	p.check(finite(r) && r >= 0, "repetition_penalty is %v, want a finite number > 0; 1 is off", r)
	p.check(math.Abs(s.PresencePenalty) <= 2, "presence_penalty is %v, want -2 to 2", s.PresencePenalty)
	p.check(math.Abs(s.FrequencyPenalty) <= 2, "frequency_penalty is %v, want -2 to 2", s.FrequencyPenalty)
	for _, id := range slices.Sorted(maps.Keys(s.LogitBias)) {
		ok := id >= 0 && math.Abs(s.LogitBias[id]) <= 100
		p.check(ok, "logit_bias of token %d is %v, want -100 to 100 and an id >= 0", id, s.LogitBias[id])
	}
	p.check(s.MinTokens >= 0, "min_tokens is %d, want >= 0", s.MinTokens)
	p.check(s.MaxTokens <= 0 || s.MinTokens <= s.MaxTokens, "min_tokens is %d, above max_tokens, %d", s.MinTokens,
		s.MaxTokens)
	p.check(len(s.StopTokenIDs) == 0 || slices.Min(s.StopTokenIDs) >= 0, "a stop token id is negative")
	allowed := s.AllowedTokenIDs
	p.check(allowed == nil || len(allowed) > 0 && slices.Min(allowed) >= 0,
		"allowed_token_ids is empty, or one is negative; nil allows all tokens")
	p.check(!slices.Contains(s.BadWords, ""), "a bad word is empty")
	const maxLogprobs = 20 // as in OpenAI's API
	p.check(s.TopLogprobs >= 0 && s.TopLogprobs <= maxLogprobs, "top_logprobs is %d, want 0 to %d", s.TopLogprobs,
		maxLogprobs)
	n := deref(s.PromptLogprobs)
	p.check(n >= 0 && n <= maxLogprobs, "prompt_logprobs is %d, want 0 to %d", n, maxLogprobs)
	s.validateOutput(&p)
	return p.err("complete", "correct the ChatOptions of the call or of the model")
}

// settings resolves the options to the full set of values. Those of the call override those of the model. The seed
// stays 0 when neither sets it.
func (o *ChatOptions) settings(defaults *ChatOptions) Sampling {
	s := Sampling{Temperature: 1, TopP: 1}
	defaults.override(&s)
	o.override(&s)
	return s
}

func (o *ChatOptions) override(s *Sampling) {
	if o == nil {
		return
	}
	set(&s.Temperature, o.Temperature)
	set(&s.TopP, o.TopP)
	set(&s.TopK, o.TopK)
	set(&s.MaxTokens, o.MaxTokens)
	set(&s.Seed, o.Seed)
	setList(&s.Stop, o.Stop)
	set(&s.MinP, o.MinP)
	set(&s.RepetitionPenalty, o.RepetitionPenalty)
	set(&s.PresencePenalty, o.PresencePenalty)
	set(&s.FrequencyPenalty, o.FrequencyPenalty)
	set(&s.MinTokens, o.MinTokens)
	set(&s.TopLogprobs, o.TopLogprobs)
	if o.LogitBias != nil {
		s.LogitBias = maps.Clone(o.LogitBias)
	}
	setList(&s.StopTokenIDs, o.StopTokenIDs)
	set(&s.IgnoreEOS, o.IgnoreEOS)
	setList(&s.AllowedTokenIDs, o.AllowedTokenIDs)
	setList(&s.BadWords, o.BadWords)
	s.PromptLogprobs = cmp.Or(clonePtr(o.PromptLogprobs), s.PromptLogprobs)
	s.ResponseFormat = cmp.Or(o.ResponseFormat.clone(), s.ResponseFormat)
	s.ToolChoice = cmp.Or(clonePtr(o.ToolChoice), s.ToolChoice)
	if s.ResponseFormat != nil && s.ResponseFormat.Type == FormatText {
		s.ResponseFormat = nil // it restricts nothing
	}
	if s.ToolChoice != nil && s.ToolChoice.Mode == ToolAuto {
		s.ToolChoice = nil
	}
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func setList[T any](to *[]T, from []T) {
	if from != nil {
		*to = slices.Clone(from)
	}
}

func (o *ChatOptions) hasSeed() bool { return o != nil && o.Seed != nil }

func (o ChatOptions) clone() ChatOptions {
	return ChatOptions{
		Temperature: clonePtr(o.Temperature), TopP: clonePtr(o.TopP), TopK: clonePtr(o.TopK),
		MaxTokens: clonePtr(o.MaxTokens), Stop: slices.Clone(o.Stop), Seed: clonePtr(o.Seed),
		TemplateArgs: slices.Clone(o.TemplateArgs),

		StopTokenIDs: slices.Clone(o.StopTokenIDs), MinTokens: clonePtr(o.MinTokens), MinP: clonePtr(o.MinP),
		RepetitionPenalty: clonePtr(o.RepetitionPenalty), PresencePenalty: clonePtr(o.PresencePenalty),
		FrequencyPenalty: clonePtr(o.FrequencyPenalty), LogitBias: maps.Clone(o.LogitBias),
		IgnoreEOS: clonePtr(o.IgnoreEOS), AllowedTokenIDs: slices.Clone(o.AllowedTokenIDs),
		BadWords: slices.Clone(o.BadWords), TopLogprobs: clonePtr(o.TopLogprobs), PromptLogprobs: clonePtr(o.PromptLogprobs),
		ResponseFormat: o.ResponseFormat.clone(), ToolChoice: clonePtr(o.ToolChoice),
	}
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// templateArgs merges the variables of the chat template. Those of the call override those of the model. It returns nil
// when there are none.
func (o *ChatOptions) templateArgs(defaults *ChatOptions) (json.RawMessage, error) {
	merged := map[string]json.RawMessage{}
	for _, o := range []*ChatOptions{defaults, o} {
		if o == nil || len(o.TemplateArgs) == 0 || bytes.Equal(bytes.TrimSpace(o.TemplateArgs), []byte("null")) {
			continue
		}
		var args map[string]json.RawMessage
		if err := json.Unmarshal(o.TemplateArgs, &args); err != nil {
			p := problems{"template arguments must be a JSON object: " + err.Error()}
			return nil, p.err("complete", `write them like {"enable_thinking": false}`)
		}
		maps.Copy(merged, args)
	}
	if len(merged) == 0 {
		return nil, nil
	}
	return json.Marshal(merged)
}

// CompleteN asks the model for n replies to h at once, which it does not change: n is OpenAI's field of that name. The
// first is that of [Model.Complete]; each has its own seed, derived from that one, in the settings of its [Sample]. A
// backend that shares prefixes computes the prompt once. Only the first has the logprobs of the prompt, if opts asks
// for them. opts may be nil. Replies are recorded in their order when ctx comes from [Record].
//
// Errors are those of Complete; n must be at least 1. The first error ends the other replies.
func (m *Model) CompleteN(ctx context.Context, h *History, n int, opts *ChatOptions) ([]*ChatResponse, error) {
	b, err := m.registered("complete")
	if err != nil {
		return nil, err
	}
	var p problems
	p.check(n >= 1, "n is %d, want at least 1", n)
	if err := p.err("complete", "ask for at least one reply"); err != nil {
		return nil, err
	}
	request, err := m.request(ctx, h, opts)
	if err != nil {
		return nil, err
	}
	return m.answerAll(ctx, n, request, func(ctx context.Context, _ int, one *ChatRequest) (*ChatResponse, error) {
		return b.Complete(ctx, m, one)
	})
}

// ChoicePiece is a [Piece] of one of several replies.
type ChoicePiece struct {
	// Choice is the index of the reply.
	Choice int
	Piece
	// End is the whole reply, in a last piece that has nothing else; nil before. An error of that piece is ignored: the
	// reply is complete, and recorded.
	End *ChatResponse
}

// StreamN is [Model.CompleteN] that hands out the replies piece by piece while they are sampled, as [Model.Stream]
// does. Pieces of different replies come in any order, one call of piece at a time.
func (m *Model) StreamN(
	ctx context.Context, h *History, n int, opts *ChatOptions, piece func(ChoicePiece) error,
) ([]*ChatResponse, error) {
	b, err := m.registered("stream")
	if err != nil {
		return nil, err
	}
	var p problems
	p.check(n >= 1, "n is %d, want at least 1", n)
	p.check(piece != nil, "piece is nil")
	if err := p.err("stream", "ask for at least one reply, and pass a function"); err != nil {
		return nil, err
	}
	request, err := m.request(ctx, h, opts)
	if err != nil {
		return nil, err
	}
	streamer, out := streamerOf(b), &choicePieces{to: piece, begun: map[int]bool{}}
	return m.answerAll(ctx, n, request, func(ctx context.Context, i int, one *ChatRequest) (*ChatResponse, error) {
		r, err := streamer.Stream(ctx, m, one, out.of(i))
		return out.end(i, r, err)
	})
}

// SampleN is [Model.Sample] for several prompts at once, with n replies to each: reply i to prompt k has the index
// k n + i. The first one has the seed of the call, and the others have seeds that are derived from it; where the seed
// is set, all prompts have the same n seeds, so that a reply does not depend on the other prompts. Only the first reply
// to a prompt has the logprobs of the prompt, if opts asks for them. piece may be nil.
func (m *Model) SampleN(
	ctx context.Context, prompts [][]int32, n int, opts *ChatOptions, piece func(ChoicePiece) error,
) ([]*ChatResponse, error) {
	sampler, settings, err := m.sampling(ctx, prompts, opts)
	if err != nil {
		return nil, err
	}
	var p problems
	p.check(n >= 1, "n is %d, want at least 1", n)
	if err := p.err("sample", "ask for at least one reply"); err != nil {
		return nil, err
	}
	if piece == nil {
		piece = func(ChoicePiece) error { return nil }
	}
	out, seeded := &choicePieces{to: piece, begun: map[int]bool{}}, opts.hasSeed() || m.opts.Chat.hasSeed()
	replies, err := atOnce(ctx, n*len(prompts), func(ctx context.Context, i int) (*ChatResponse, error) {
		s := settings
		if i%n > 0 {
			s.PromptLogprobs = nil // they are those of the first reply
		}
		s.Seed = choiceSeed(settings.Seed, i)
		if seeded {
			s.Seed = choiceSeed(settings.Seed, i%n)
		}
		r, err := sampler.Sample(ctx, m, slices.Clone(prompts[i/n]), s, out.of(i))
		return out.end(i, r, err)
	})
	if err != nil {
		return nil, err
	}
	for _, r := range replies {
		if err := recordSample(ctx, m, r); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// answerAll asks for n replies to a request at once, with different seeds, and records them in their order.
func (m *Model) answerAll(
	ctx context.Context, n int, request *ChatRequest,
	ask func(ctx context.Context, i int, one *ChatRequest) (*ChatResponse, error),
) ([]*ChatResponse, error) {
	replies, err := atOnce(ctx, n, func(ctx context.Context, i int) (*ChatResponse, error) {
		one := *request
		if n > 1 {
			one.Messages, one.Tools = cloneMessages(request.Messages), cloneTools(request.Tools)
		}
		if i > 0 {
			one.Settings.PromptLogprobs = nil // they are those of the first
		}
		one.Settings.Seed = choiceSeed(request.Settings.Seed, i)
		e := CompletionEvent{Model: m, Time: time.Now(), Request: &one}
		r, err := ask(ctx, i, &one)
		if m.events().Completion == nil {
			return r, err
		}
		if p := positionOf(ctx); p != nil {
			e.Rollout, e.Try = p.rollout, p.try
		}
		if e.Err = err; err == nil {
			e.Response = r
		}
		e.Duration = time.Since(e.Time)
		m.events().Completion(e)
		return r, err
	})
	if err != nil {
		return nil, err
	}
	for _, r := range replies {
		if err := recordCompletion(ctx, request, r.Message); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// choiceSeed derives the seed of the i-th reply to a request; the first one has that of the request.
func choiceSeed(seed uint64, i int) uint64 {
	if i == 0 {
		return seed
	}
	return mix(seedChoice, seed, uint64(i))
}

// atOnce asks for n replies at the same time, one alone in the goroutine of the caller. The first error ends the
// others and is returned. A panic is one of the caller.
func atOnce(
	ctx context.Context, n int, ask func(ctx context.Context, i int) (*ChatResponse, error),
) ([]*ChatResponse, error) {
	if n == 1 {
		r, err := ask(ctx, 0)
		if err != nil {
			return nil, err
		}
		return []*ChatResponse{r}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	replies, errs, panics := make([]*ChatResponse, n), make([]error, n), make([]any, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					panics[i], errs[i] = v, newPanicError(v)
				}
				if errs[i] != nil {
					cancel(errs[i])
				}
			}()
			replies[i], errs[i] = ask(ctx, i)
		})
	}
	all.Wait()
	for i, v := range panics {
		if v != nil { // the caller can recover it, as it can that of one request
			panic(errs[i])
		}
	}
	if errors.Join(errs...) != nil {
		return nil, context.Cause(ctx)
	}
	return replies, nil
}

// choicePieces hands out the pieces of several replies, one at a time.
type choicePieces struct {
	to    func(ChoicePiece) error
	mu    sync.Mutex
	begun map[int]bool // replies with a piece
}

// of returns what takes the pieces of one reply.
func (c *choicePieces) of(choice int) func(Piece) error {
	return func(p Piece) error { return c.send(ChoicePiece{Choice: choice, Piece: p}) }
}

func (c *choicePieces) send(p ChoicePiece) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun[p.Choice] = true
	return c.to(p)
}

// end hands out the last piece of a reply, unless there is an error. One that had no piece, because it is empty, is
// whole before.
func (c *choicePieces) end(choice int, r *ChatResponse, err error) (*ChatResponse, error) {
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	begun := c.begun[choice]
	c.mu.Unlock()
	if !begun {
		err = c.send(ChoicePiece{Choice: choice, Piece: r.Piece()})
	}
	if err == nil {
		_ = c.send(ChoicePiece{Choice: choice, Piece: Piece{ID: r.ID, Model: r.Model}, End: r}) // the reply is complete
	}
	return r, err
}
