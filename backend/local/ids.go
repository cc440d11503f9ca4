package local

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/tokenizer"
)

// ownIDs is the hint about ids that a model does not have.
const ownIDs = "send ids of this model's own tokenizer"

// Encode returns the ids of a text.
func (b *Backend) Encode(ctx context.Context, m *art.Model, text string, special bool) ([]int32, error) {
	e, err := b.entry("encode", m)
	if err != nil {
		return nil, err
	}
	return e.base.tokenizer.Encode(text, special), ctx.Err()
}

// Decode returns the text of ids.
func (b *Backend) Decode(ctx context.Context, m *art.Model, ids []int32) (string, error) {
	e, err := b.entry("decode", m)
	if err != nil {
		return "", err
	}
	if _, err := e.base.tokenBytes("decode", ids); err != nil {
		return "", err
	}
	return e.base.tokenizer.Decode(ids, false), ctx.Err()
}

// TokenBytes returns the bytes of each of ids.
func (b *Backend) TokenBytes(ctx context.Context, m *art.Model, ids []int32) ([][]byte, error) {
	e, err := b.entry("token bytes", m)
	if err != nil {
		return nil, err
	}
	list, err := e.base.tokenBytes("token bytes", ids)
	if err != nil {
		return nil, err
	}
	return list, ctx.Err()
}

// tokenBytes returns the bytes of each of ids, all of which must be in the vocabulary.
func (s *base) tokenBytes(op string, ids []int32) ([][]byte, error) {
	list := make([][]byte, len(ids))
	for i, id := range ids {
		if list[i] = s.tokenizer.TokenBytes(id); list[i] == nil {
			return nil, invalid(op, ownIDs, "the vocabulary has no token %d", id)
		}
	}
	return list, nil
}

// Sample continues a prompt of token ids.
func (b *Backend) Sample(
	ctx context.Context, m *art.Model, prompt []int32, s art.Sampling, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	e, err := b.entry("sample", m)
	if err != nil {
		return nil, err
	}
	for _, id := range prompt {
		if limit := e.base.config.VocabSize; id < 0 || int(id) >= limit {
			return nil, invalid("sample", ownIDs, "token %d is not in the vocabulary of %d", id, limit)
		}
	}
	if err := e.base.checkSettings("sample", s); err != nil {
		return nil, err
	}
	c := b.newCompletion(ctx, e, m, "cmpl", prompt, s)
	if s.ResponseFormat != nil {
		if c.mask, err = e.grammars.mask("sample", formatGrammar(s.ResponseFormat)); err != nil {
			return nil, err
		}
	}
	c.mask = e.base.limited(c.mask, s)
	stream, text := c.stream(), strings.Builder{}
	out := c.pieces(piece, true, func(id int32, p *art.Piece) {
		if slices.Contains(s.StopTokenIDs, id) {
			return // it is the last one
		}
		delta, _ := stream.Add(id)
		p.Content += delta
		text.WriteString(delta)
	})
	r := c.request()
	if len(s.Stop) > 0 {
		r.Stop = engine.StopText(c.stream().Add)
	}
	result, err := out.run(ctx, r)
	if err != nil {
		return nil, err
	}
	rest := stream.Flush()
	text.WriteString(rest)
	if err := out.last(art.Piece{Content: rest}); err != nil {
		return nil, err
	}
	message := art.Assistant(text.String())
	finish := finishOf(result.Reason, message)
	message.Sample = c.sample(result, finish)
	response := c.answer(result, message, finish)
	response.Stopped = stream.Stopped()
	return response, c.addPromptLogprobs(ctx, response)
}

// stream begins to decode the reply, up to a stop string.
func (c *completion) stream() *tokenizer.Stream {
	return c.base.tokenizer.Stream(true, c.settings.Stop...).StopAfter(c.settings.MinTokens)
}

// Tokenize returns the prompt of a request, and the ids of a reply to it.
func (b *Backend) Tokenize(
	ctx context.Context, m *art.Model, req *art.ChatRequest, reply *art.Message,
) (prompt, ids []int32, err error) {
	const op = "tokenize"
	e, err := b.entry(op, m)
	if err != nil {
		return nil, nil, err
	}
	template, prompt, err := e.prompt(ctx, op, req)
	if err != nil || reply == nil {
		return prompt, nil, err
	}
	whole, mask, err := template.Target(append(slices.Clone(req.Messages), *reply), req.Tools)
	if err != nil {
		return nil, nil, promptError(err)
	}
	n := len(whole) // up to the last id of the reply
	for n > 0 && !mask[n-1] {
		n--
	}
	if n <= len(prompt) || !slices.Equal(whole[:len(prompt)], prompt) {
		return prompt, nil, invalid(op, "the chat template of the model cannot write this reply",
			"the conversation with the reply does not begin with the prompt for it")
	}
	return prompt, whole[len(prompt):n], nil
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
		return nil, 0, invalid(op, "", "%w", err)
	}
	return logprobs, now.step, nil
}
