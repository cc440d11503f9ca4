package local

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/tokenizer/chat"
)

// Tokenize returns the prompt of a request, and the ids of a reply to it.
func (b *Backend) Tokenize(
	ctx context.Context, m *art.Model, req *art.ChatRequest, reply *art.Message,
) (prompt, ids []int32, err error) {
	const op = "tokenize"
	e, err := b.entry(op, m)
	if err != nil {
		return nil, nil, err
	}
	template, err := e.template.With(chat.Options{Args: req.TemplateArgs})
	if err != nil {
		return nil, nil, &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
	}
	prompt, err = template.PromptContext(ctx, req.Messages, req.Tools)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, nil, promptError(err)
	}
	if reply == nil {
		return prompt, nil, nil
	}
	whole, mask, err := template.Target(append(slices.Clone(req.Messages), *reply), req.Tools)
	if err != nil {
		return nil, nil, promptError(err)
	}
	ids, err = replyIDs(prompt, whole, mask)
	if err != nil {
		err = &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err),
			Hint: "the chat template of the model cannot write this reply"}
	}
	return prompt, ids, err
}

// replyIDs returns what a conversation has behind a prompt, up to the last id of the reply.
func replyIDs(prompt, whole []int32, mask []bool) ([]int32, error) {
	n := len(whole)
	for n > 0 && !mask[n-1] {
		n--
	}
	if n <= len(prompt) || !slices.Equal(whole[:len(prompt)], prompt) {
		return nil, errors.New("the conversation with the reply does not begin with the prompt for it")
	}
	return whole[len(prompt):n], nil
}

// Logprobs scores ids under the newest step of m.
func (b *Backend) Logprobs(ctx context.Context, m *art.Model, ids []int32) ([]float32, int, error) {
	const op = "logprobs"
	e, err := b.entry(op, m)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, 0, err
	}
	if limit := e.base.engine.Context(); len(ids) > limit {
		err := fmt.Errorf("%w: %d tokens, the context has %d", art.ErrContextLength, len(ids), limit)
		return nil, 0, &art.Error{Op: op, Err: err, Hint: e.base.contextHint()}
	}
	now := e.served(ctx)
	logprobs, err := engine.Score(b.device, e.base.config, e.base.params, now.adapter, ids)
	switch {
	case isDeviceFault(err):
		return nil, 0, &art.Error{Op: op, Err: deviceError(err)}
	case err != nil:
		return nil, 0, &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
	}
	return logprobs, now.step, nil
}
