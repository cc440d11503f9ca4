package local

import (
	"context"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
)

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
	for _, id := range ids {
		if e.base.tokenizer.TokenBytes(id) == nil {
			return "", &art.Error{
				Op: "decode", Err: fmt.Errorf("%w: the vocabulary has no token %d", art.ErrInvalid, id),
				Hint: "send ids of this model's own tokenizer",
			}
		}
	}
	return e.base.tokenizer.Decode(ids, false), ctx.Err()
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
			err := fmt.Errorf("%w: token %d is not in the vocabulary of %d", art.ErrInvalid, id, limit)
			return nil, &art.Error{Op: "sample", Err: err, Hint: "send ids of this model's own tokenizer"}
		}
	}
	now, end := e.serving.Load(), e.template.EndOfTurn()
	result, err := e.base.engine.Complete(ctx, e.base.request(prompt, end, s, now.adapter))
	if err != nil {
		return nil, e.base.completionError(err)
	}
	message := art.Assistant(e.base.text(result, s.Stop))
	message.Sample = &art.Sample{
		PromptIDs: prompt, IDs: result.IDs, Logprobs: result.Logprobs, Sampled: result.Sampled, Settings: s, Step: now.step,
		Finish: finishOf(result.Reason, message),
	}
	r := &art.ChatResponse{
		ID: fmt.Sprintf("cmpl-%d", b.calls.Add(1)), Model: fmt.Sprintf("%s@%d", m.Name(), now.step),
		Message: message, Finish: message.Sample.Finish,
		Usage: art.Usage{PromptTokens: len(prompt), CachedTokens: result.Cached, CompletionTokens: len(result.IDs)},
	}
	return r, piece(art.Piece{
		ID: r.ID, Model: r.Model, PromptIDs: prompt, IDs: result.IDs, Logprobs: result.Logprobs, Content: message.Content,
	})
}

// text returns the text of a reply, without special tokens, a stop text and what follows it.
func (s *base) text(r *engine.Result, stop []string) string {
	stream, text := s.tokenizer.Stream(true, stop...), strings.Builder{}
	for _, id := range r.IDs {
		delta, _ := stream.Add(id)
		text.WriteString(delta)
	}
	text.WriteString(stream.Flush())
	return text.String()
}
