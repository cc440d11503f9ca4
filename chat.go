package art

import "context"

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

// Complete asks the model for one reply to h, and leaves h alone. opts may be nil. The reply is recorded when ctx comes
// from [Record].
//
// The seed of the call is opts.Seed, else the model's, else derived from the run's seed, the step and the place of the
// call in its gather; see [GatherOptions].
//
// It returns [ErrNotRegistered], [ErrInvalid] for messages or options that make no sense, and what the backend returns.
func (m *Model) Complete(ctx context.Context, h *History, opts *ChatOptions) (*ChatResponse, error) {
	b, err := m.registered("complete")
	if err != nil {
		return nil, err
	}
	if err := h.validate(); err != nil {
		return nil, err
	}
	settings := opts.settings(&m.opts.Chat)
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	args, err := opts.templateArgs(&m.opts.Chat)
	if err != nil {
		return nil, err
	}
	if !opts.hasSeed() && !m.opts.Chat.hasSeed() {
		settings.Seed = m.callSeed(ctx)
	}
	// The copies keep what the backend and the recorder hold apart from what the caller appends or edits.
	request := &ChatRequest{Messages: cloneMessages(h.Messages), Tools: cloneTools(h.Tools), Settings: settings, TemplateArgs: args}
	response, err := b.Complete(ctx, m, request)
	if err != nil {
		return nil, err
	}
	recordCompletion(ctx, request, response.Message)
	return response, nil
}

// validate tells whether there is something to reply to.
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
