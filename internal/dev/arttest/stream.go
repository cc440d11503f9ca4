package arttest

import (
	"context"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
)

var _ driver.Streamer = (*Backend)(nil)

// Stream implements [driver.Streamer]: a piece for each letter of the reasoning, each token, and each tool call.
func (b *Backend) Stream(
	ctx context.Context, m *art.Model, req *art.ChatRequest, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	response, err := b.Complete(ctx, m, req)
	if err != nil {
		return nil, err
	}
	for _, p := range pieces(&response.Message, response.TopLogprobs) {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		p.ID, p.Model = response.ID, response.Model
		if err := piece(p); err != nil {
			return nil, err
		}
	}
	return response, nil
}

// pieces splits a reply, whose tokens are the letters of its content.
func pieces(m *art.Message, top [][]art.TokenLogprob) []art.Piece {
	var out []art.Piece
	for _, letter := range m.Reasoning {
		out = append(out, art.Piece{Reasoning: string(letter)})
	}
	for i, letter := range []rune(m.Content) {
		p := art.Piece{Content: string(letter)}
		if s := m.Sample; s != nil {
			p.IDs, p.Logprobs = s.IDs[i:i+1], s.Logprobs[i:i+1]
			if top != nil {
				p.TopLogprobs = top[i : i+1]
			}
		}
		out = append(out, p)
	}
	for i := range m.ToolCalls {
		out = append(out, art.Piece{ToolCalls: slices.Clone(m.ToolCalls[i : i+1])})
	}
	if m.Sample != nil {
		out = slices.Concat([]art.Piece{{PromptIDs: m.Sample.PromptIDs}}, out)
	}
	return out
}

// Sample implements [driver.Sampler]: the reply to a user who said the text of prompt. It is one piece.
func (b *Backend) Sample(
	ctx context.Context, m *art.Model, prompt []int32, s art.Sampling, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	req := &art.ChatRequest{Settings: s, Messages: conversation(string(prompt))}
	r, err := b.Complete(ctx, m, req)
	if err != nil {
		return nil, err
	}
	ids := tokens(r.Message.Content)
	r.Message.Sample = &art.Sample{
		PromptIDs: prompt, IDs: ids, Logprobs: logprobs(ids), Settings: s, Finish: r.Finish, Step: m.Step(),
	}
	r.Usage.PromptTokens = len(prompt)
	addLikeliest(r, s, prompt, ids)
	return r, piece(art.Piece{
		ID: r.ID, Model: r.Model, PromptIDs: prompt, IDs: ids, Logprobs: logprobs(ids), Content: r.Message.Content,
		TopLogprobs: r.TopLogprobs,
	})
}

// conversation reads what the function prompt wrote. A text that it did not write is what a user said.
func conversation(text string) []art.Message {
	var out []art.Message
	for line := range strings.Lines(text) {
		role, content, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		if !ok {
			role, content = string(art.RoleUser), role
		}
		out = append(out, art.Message{Role: art.Role(role), Content: content})
	}
	return out
}

// Encode implements [driver.Tokenizer]. There are no special tokens.
func (b *Backend) Encode(ctx context.Context, m *art.Model, text string, _ bool) ([]int32, error) {
	_, err := b.step(ctx, "encode", m)
	return tokens(text), err
}

// Decode implements [driver.Tokenizer].
func (b *Backend) Decode(ctx context.Context, m *art.Model, ids []int32) (string, error) {
	_, err := b.step(ctx, "decode", m)
	return string(ids), err
}

// TokenBytes implements [driver.Tokenizer].
func (b *Backend) TokenBytes(ctx context.Context, m *art.Model, ids []int32) ([][]byte, error) {
	_, err := b.step(ctx, "token bytes", m)
	list := make([][]byte, len(ids))
	for i, id := range ids {
		list[i] = []byte(string(id))
	}
	return list, err
}
