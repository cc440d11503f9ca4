package art

import (
	"context"
	"fmt"
	"slices"
)

// Tokenize returns the token ids of the prompt that [Model.Complete] would render from h. opts may be nil; only its
// TemplateArgs are used. It returns [ErrUnsupported] when the backend is no driver.Tokenizer.
func (m *Model) Tokenize(ctx context.Context, h *History, opts *ChatOptions) ([]int32, error) {
	tokenizer, err := capability[tokenizer](m, "tokenize", "driver.Tokenizer")
	if err != nil {
		return nil, err
	}
	request, err := m.promptRequest(h, opts)
	if err != nil {
		return nil, err
	}
	ids, _, err := tokenizer.Tokenize(ctx, m, request, nil)
	return ids, err
}

// promptRequest returns the request for the ids of the prompt that h renders to.
func (m *Model) promptRequest(h *History, opts *ChatOptions) (*ChatRequest, error) {
	if err := h.validate(); err != nil {
		return nil, err
	}
	args, err := opts.templateArgs(&m.opts.Chat)
	return &ChatRequest{
		Messages: cloneMessages(h.Messages), Tools: cloneTools(h.Tools), Settings: Sampling{Temperature: 1, TopP: 1},
		TemplateArgs: args,
	}, err
}

// Sample continues a prompt of token ids, without a chat template: see driver.Sampler. opts and piece may be nil;
// TemplateArgs of opts are of no use here and refused. Seeds are derived as for [Model.Complete]. The reply is recorded
// when ctx comes from [Record] or a [Recorder].
//
// It returns [ErrNotRegistered], [ErrInvalid], [ErrUnsupported] when the backend is no Sampler, and the errors of the
// backend.
func (m *Model) Sample(
	ctx context.Context, prompt []int32, opts *ChatOptions, piece func(Piece) error,
) (*ChatResponse, error) {
	sampler, settings, err := m.sampling(ctx, [][]int32{prompt}, opts)
	if err != nil {
		return nil, err
	}
	if piece == nil {
		piece = func(Piece) error { return nil }
	}
	r, err := sampler.Sample(ctx, m, slices.Clone(prompt), settings, piece)
	if err == nil {
		err = recordSample(ctx, m, r)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// sampling validates a call that continues prompts, and resolves its options.
func (m *Model) sampling(ctx context.Context, prompts [][]int32, opts *ChatOptions) (sampler, Sampling, error) {
	const op = "sample"
	sampler, err := capability[sampler](m, op, "driver.Sampler")
	if err != nil {
		return nil, Sampling{}, err
	}
	var p problems
	p.check(len(prompts) > 0, "there is no prompt")
	empty := func(ids []int32) bool { return len(ids) == 0 }
	p.check(!slices.ContainsFunc(prompts, empty), "the prompt has no token ids")
	p.check(opts == nil || opts.TemplateArgs == nil, "there are template arguments, but no template is used")
	if err := p.err(op, "correct the arguments"); err != nil {
		return nil, Sampling{}, err
	}
	settings, err := m.settings(ctx, opts)
	if err == nil {
		_, err = settings.resolveTools(nil)
	}
	return sampler, settings, err
}

// Force appends a given reply, such as a teacher's or one from a file, to t's main history, as [Model.Chat] would
// append its own (teacher forcing): with the [Sample] that the current step would have had for it. So the reply can be
// trained on, by [Model.Train] with a reward or by [Model.TrainSFT]. It returns a copy of the message. opts may be nil;
// only its TemplateArgs are used.
//
// It returns [ErrNotRegistered], [ErrInvalid], [ErrFrozen], [ErrContextLength], and [ErrUnsupported] when the backend
// is not both a driver.Tokenizer and a driver.Sampler; t is unchanged then.
func (m *Model) Force(ctx context.Context, t *Trajectory, reply Message, opts *ChatOptions) (*Message, error) {
	const op = "force"
	tokenizer, err := capability[tokenizer](m, op, "driver.Tokenizer")
	if err != nil {
		return nil, err
	}
	sampler, err := capability[sampler](m, op, "driver.Sampler")
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, problems{"trajectory is nil"}.err(op, "start one with NewTrajectory")
	}
	if err := m.Trainable(op); err != nil {
		return nil, err
	}
	if reply.Role != RoleAssistant {
		return nil, problems{fmt.Sprintf("the role of the reply is %q", reply.Role)}.err(op, "make it with Assistant")
	}
	request, err := m.promptRequest(&t.History, opts)
	if err != nil {
		return nil, err
	}
	reply = cloneMessages([]Message{reply})[0]
	reply.Sample = nil
	prompt, ids, err := tokenizer.Tokenize(ctx, m, request, &reply)
	if err != nil {
		return nil, err
	}
	reply.Sample, err = scored(ctx, m, sampler, prompt, ids)
	if err != nil {
		return nil, err
	}
	reply.Sample.Finish = FinishStop
	if len(reply.ToolCalls) > 0 {
		reply.Sample.Finish = FinishToolCalls
	}
	if err := recordCompletion(ctx, request, reply); err != nil {
		return nil, err
	}
	t.Add(reply)
	return &reply, nil
}

func scored(ctx context.Context, m *Model, with sampler, prompt, ids []int32) (*Sample, error) {
	all := slices.Concat(prompt, ids)
	logprobs, step, err := with.Logprobs(ctx, m, all)
	if err != nil {
		return nil, err
	}
	if len(logprobs) != len(all)-1 {
		return nil, &Error{"force", fmt.Errorf("the backend returned %d logprobs for %d ids", len(logprobs), len(all)), ""}
	}
	return &Sample{
		PromptIDs: prompt, IDs: ids, Logprobs: logprobs[len(prompt)-1:],
		Settings: Sampling{Temperature: 1, TopP: 1}, Step: step,
	}, nil
}
