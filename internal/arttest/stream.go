package arttest

import (
	"context"
	"slices"

	"github.com/goart-dev/art"
)

var _ art.Streamer = (*Backend)(nil)

// Stream implements [art.Streamer]: a piece for each letter of the reasoning, each token, and each tool call.
func (b *Backend) Stream(
	ctx context.Context, m *art.Model, req *art.ChatRequest, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	response, err := b.Complete(ctx, m, req)
	if err != nil {
		return nil, err
	}
	for _, p := range pieces(&response.Message) {
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
func pieces(m *art.Message) []art.Piece {
	var out []art.Piece
	for _, letter := range m.Reasoning {
		out = append(out, art.Piece{Reasoning: string(letter)})
	}
	for i, letter := range []rune(m.Content) {
		p := art.Piece{Content: string(letter)}
		if s := m.Sample; s != nil {
			p.IDs, p.Logprobs = s.IDs[i:i+1], s.Logprobs[i:i+1]
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
