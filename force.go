package art

import (
	"context"
	"fmt"
)

// Force appends a given reply, such as a teacher's or one from a file, to t's main history, as [Model.Chat] would
// append its own (teacher forcing): with the [Sample] that the current step would have had for it. So the reply can be
// trained on, by [Model.Train] with a reward or by [Model.TrainSFT]. It returns a copy of the message. opts may be nil;
// only its TemplateArgs are used.
//
// It returns [ErrNotRegistered], [ErrInvalid], [ErrFrozen], [ErrContextLength], and [ErrUnsupported] when the backend
// is not both a [Tokenizer] and a [Sampler]; t is unchanged then.
func (m *Model) Force(ctx context.Context, t *Trajectory, reply Message, opts *ChatOptions) (*Message, error) {
	const op = "force"
	tokenizer, err := capability[Tokenizer](m, op, "art.Tokenizer, such as backend/local")
	if err != nil {
		return nil, err
	}
	sampler, err := capability[Sampler](m, op, "art.Sampler, such as backend/local")
	if err != nil {
		return nil, err
	}
	if err := m.checkForced(t, &reply); err != nil {
		return nil, err
	}
	args, err := opts.templateArgs(&m.opts.Chat)
	if err != nil {
		return nil, err
	}
	request := &ChatRequest{
		Messages: cloneMessages(t.Messages), Tools: cloneTools(t.Tools), Settings: Sampling{Temperature: 1, TopP: 1},
		TemplateArgs: args,
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

// checkForced refuses what cannot be a reply of m in t.
func (m *Model) checkForced(t *Trajectory, reply *Message) error {
	if t == nil {
		return problems{"trajectory is nil"}.err("force", "start one with NewTrajectory")
	}
	if err := m.trainable("force"); err != nil {
		return err
	}
	if reply.Role != RoleAssistant {
		return problems{fmt.Sprintf("the role of the reply is %q", reply.Role)}.err("force", "make it with Assistant")
	}
	return t.History.validate()
}

// scored returns the sample of ids after prompt.
func scored(ctx context.Context, m *Model, sampler Sampler, prompt, ids []int32) (*Sample, error) {
	all := append(append([]int32(nil), prompt...), ids...)
	logprobs, step, err := sampler.Logprobs(ctx, m, all)
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
