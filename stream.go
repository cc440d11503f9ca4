package art

import (
	"context"
	"slices"
)

// Piece is what a driver.Streamer adds to a reply. It may have tokens without text, and text without tokens.
type Piece struct {
	// ID and Model are those of the [ChatResponse]. Every piece has them.
	ID, Model string
	// PromptIDs is the exact context, in the first piece of a model whose replies carry a [Sample]; nil in all others.
	PromptIDs []int32
	// IDs are the tokens that were sampled, and Logprobs theirs, as in [Sample]. Nil when replies carry no sample.
	IDs      []int32
	Logprobs []float32
	// TopLogprobs are those of [ChatResponse] for IDs; nil if there are none.
	TopLogprobs [][]TokenLogprob
	// Reasoning and Content are to be appended to those of the message. A reply's reasoning comes before its content.
	Reasoning, Content string
	// ToolCalls are complete calls.
	ToolCalls []ToolCall
}

// Stream is [Model.Complete] that hands out the reply piece by piece while it is sampled; see driver.Streamer for what
// pieces are. On a backend that is no Streamer the whole reply is one piece. It is recorded like that of Complete, once
// it is complete. opts may be nil.
func (m *Model) Stream(
	ctx context.Context, h *History, opts *ChatOptions, piece func(Piece) error,
) (*ChatResponse, error) {
	b, err := m.registered("stream")
	if err != nil {
		return nil, err
	}
	if piece == nil {
		return nil, problems{"piece is nil"}.err("stream", "pass a function, or call Model.Complete")
	}
	request, err := m.request(ctx, h, opts)
	if err != nil {
		return nil, err
	}
	return only(m.answerAll(ctx, 1, request, func(ctx context.Context, _ int, r *ChatRequest) (*ChatResponse, error) {
		return streamerOf(b).Stream(ctx, m, r, piece)
	}))
}

func streamerOf(b Backend) streamer {
	if streamer, ok := b.(streamer); ok {
		return streamer
	}
	return whole{b}
}

// whole makes a driver.Streamer of any backend: each reply is one piece.
type whole struct{ Backend }

// Stream implements driver.Streamer.
func (b whole) Stream(
	ctx context.Context, m *Model, req *ChatRequest, piece func(Piece) error,
) (*ChatResponse, error) {
	response, err := b.Complete(ctx, m, req)
	if err != nil {
		return nil, err
	}
	if err := piece(response.Piece()); err != nil {
		return nil, err
	}
	return response, nil
}

// Piece returns the whole response as one piece.
func (r *ChatResponse) Piece() Piece {
	p := Piece{
		ID: r.ID, Model: r.Model, Reasoning: r.Message.Reasoning, Content: r.Message.Content,
		ToolCalls: slices.Clone(r.Message.ToolCalls),
	}
	if s := r.Message.Sample; s != nil {
		p.PromptIDs, p.IDs, p.Logprobs, p.TopLogprobs = s.PromptIDs, s.IDs, s.Logprobs, r.TopLogprobs
	}
	return p
}
