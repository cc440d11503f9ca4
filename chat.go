package art

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"slices"
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
	b, err := m.registered("complete")
	if err != nil {
		return nil, err
	}
	request, err := m.request(ctx, h, opts)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	response, err := b.Complete(ctx, m, request)
	m.tellCompletion(ctx, start, request, response, err)
	if err != nil {
		return nil, err
	}
	if err := recordCompletion(ctx, request, response.Message); err != nil {
		return nil, err
	}
	return response, nil
}

// request validates a call and resolves its options.
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

// settings resolves and validates the sampling options of a call, with its seed.
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

// tellCompletion calls the event of a completion. response is ignored when err is set.
func (m *Model) tellCompletion(
	ctx context.Context, start time.Time, request *ChatRequest, response *ChatResponse, err error,
) {
	if m.events().Completion == nil {
		return
	}
	e := CompletionEvent{Model: m, Time: start, Duration: time.Since(start), Request: request, Err: err}
	if p := positionOf(ctx); p != nil {
		e.Rollout, e.Try = p.rollout, p.try
	}
	if err == nil {
		e.Response = response
	}
	m.events().Completion(e)
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
	s.validateShape(&p)
	s.validateTokens(&p)
	s.validateOutput(&p)
	return p.err("complete", "correct the ChatOptions of the call or of the model")
}

// maxLogprobs is how many of the likeliest tokens a response may list at a position, as in OpenAI's API.
const maxLogprobs = 20

// validateShape checks what reshapes the distribution, besides temperature, top-p and top-k.
func (s Sampling) validateShape(p *problems) {
	p.check(s.MinP >= 0 && s.MinP <= 1, "min_p is %v, want 0 <= min_p <= 1", s.MinP)
	r := s.RepetitionPenalty
	p.check(finite(r) && r >= 0, "repetition_penalty is %v, want a finite number > 0; 1 is off", r)
	p.check(math.Abs(s.PresencePenalty) <= 2, "presence_penalty is %v, want -2 to 2", s.PresencePenalty)
	p.check(math.Abs(s.FrequencyPenalty) <= 2, "frequency_penalty is %v, want -2 to 2", s.FrequencyPenalty)
	for _, id := range slices.Sorted(maps.Keys(s.LogitBias)) {
		ok := id >= 0 && math.Abs(s.LogitBias[id]) <= 100
		p.check(ok, "logit_bias of token %d is %v, want -100 to 100 and an id >= 0", id, s.LogitBias[id])
	}
}

// validateTokens checks what counts tokens or lists them.
func (s Sampling) validateTokens(p *problems) {
	p.check(s.MinTokens >= 0, "min_tokens is %d, want >= 0", s.MinTokens)
	p.check(s.MaxTokens <= 0 || s.MinTokens <= s.MaxTokens, "min_tokens is %d, above max_tokens, %d", s.MinTokens,
		s.MaxTokens)
	p.check(len(s.StopTokenIDs) == 0 || slices.Min(s.StopTokenIDs) >= 0, "a stop token id is negative")
	p.check(s.TopLogprobs >= 0 && s.TopLogprobs <= maxLogprobs, "top_logprobs is %d, want 0 to %d", s.TopLogprobs,
		maxLogprobs)
	n := deref(s.PromptLogprobs)
	p.check(n >= 0 && n <= maxLogprobs, "prompt_logprobs is %d, want 0 to %d", n, maxLogprobs)
}

// settings resolves the options to the full set of values. Those of the call override those of the model. The seed
// stays 0 when neither sets it.
func (o *ChatOptions) settings(defaults *ChatOptions) Sampling {
	s := Sampling{Temperature: 1, TopP: 1}
	for _, o := range []*ChatOptions{defaults, o} {
		o.override(&s)
	}
	return s
}

// override sets in s what o sets.
func (o *ChatOptions) override(s *Sampling) {
	if o == nil {
		return
	}
	set(&s.Temperature, o.Temperature)
	set(&s.TopP, o.TopP)
	set(&s.TopK, o.TopK)
	set(&s.MaxTokens, o.MaxTokens)
	set(&s.Seed, o.Seed)
	if o.Stop != nil {
		s.Stop = slices.Clone(o.Stop)
	}
	set(&s.MinP, o.MinP)
	set(&s.RepetitionPenalty, o.RepetitionPenalty)
	set(&s.PresencePenalty, o.PresencePenalty)
	set(&s.FrequencyPenalty, o.FrequencyPenalty)
	set(&s.MinTokens, o.MinTokens)
	set(&s.TopLogprobs, o.TopLogprobs)
	if o.LogitBias != nil {
		s.LogitBias = maps.Clone(o.LogitBias)
	}
	if o.StopTokenIDs != nil {
		s.StopTokenIDs = slices.Clone(o.StopTokenIDs)
	}
	if o.PromptLogprobs != nil {
		s.PromptLogprobs = clonePtr(o.PromptLogprobs)
	}
	o.restrict(s)
}

// set assigns *from unless from is nil.
func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// hasSeed reports whether the options set a seed.
func (o *ChatOptions) hasSeed() bool { return o != nil && o.Seed != nil }

// clone returns a deep copy.
func (o ChatOptions) clone() ChatOptions {
	return ChatOptions{
		Temperature: clonePtr(o.Temperature), TopP: clonePtr(o.TopP), TopK: clonePtr(o.TopK),
		MaxTokens: clonePtr(o.MaxTokens), Stop: slices.Clone(o.Stop), Seed: clonePtr(o.Seed),
		TemplateArgs: slices.Clone(o.TemplateArgs),

		StopTokenIDs: slices.Clone(o.StopTokenIDs), MinTokens: clonePtr(o.MinTokens), MinP: clonePtr(o.MinP),
		RepetitionPenalty: clonePtr(o.RepetitionPenalty), PresencePenalty: clonePtr(o.PresencePenalty),
		FrequencyPenalty: clonePtr(o.FrequencyPenalty), LogitBias: maps.Clone(o.LogitBias),
		TopLogprobs: clonePtr(o.TopLogprobs), PromptLogprobs: clonePtr(o.PromptLogprobs),
		ResponseFormat: o.ResponseFormat.clone(), ToolChoice: clonePtr(o.ToolChoice),
	}
}

// clonePtr returns a pointer to a copy of what p points to.
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
