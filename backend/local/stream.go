package local

import (
	"context"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/tokenizer/chat"
)

var _ driver.Streamer = (*Backend)(nil)

// Stream is [Backend.Complete] that calls piece with what each token adds to the reply. A piece that takes long stalls
// nobody, not even this reply: the next one has all that was sampled meanwhile.
func (b *Backend) Stream(
	ctx context.Context, m *art.Model, req *art.ChatRequest, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	c, err := b.newChat(ctx, "stream", m, req)
	if err != nil {
		return nil, err
	}
	reader := c.read()
	out := c.pieces(piece, c.now.adapter != nil, func(id int32, p *art.Piece) {
		delta := reader.Add(id)
		p.Reasoning, p.Content = p.Reasoning+delta.Reasoning, p.Content+delta.Content
		p.ToolCalls = append(p.ToolCalls, calls(delta)...)
	})
	result, err := out.run(ctx, c.request())
	if err != nil {
		return nil, err
	}
	last, _, _ := reader.Close() // what is malformed is in the response
	p := art.Piece{Reasoning: last.Reasoning, Content: last.Content, ToolCalls: calls(last)}
	if err := out.last(p); err != nil {
		return nil, err
	}
	return c.response(ctx, result)
}

// calls returns the calls of a delta, which are whole: the reader does not give them early.
func calls(d chat.Delta) (out []art.ToolCall) {
	for _, c := range d.ToolCalls {
		out = append(out, art.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	return out
}

// pieces hands out a reply.
type pieces struct {
	*completion
	to     func(art.Piece) error
	tokens bool                         // pieces have ids and logprobs
	text   func(id int32, p *art.Piece) // adds the text of a token
	begun  bool
	failed error // of to
}

func (c *completion) pieces(to func(art.Piece) error, tokens bool, text func(int32, *art.Piece)) *pieces {
	return &pieces{completion: c, to: to, tokens: tokens, text: text}
}

// run samples the reply. An error of to is returned as it is.
func (o *pieces) run(ctx context.Context, r engine.Request) (*engine.Result, error) {
	result, err := o.base.engine.Stream(ctx, r, o.add)
	if o.failed != nil {
		return nil, o.failed
	}
	if err != nil {
		return nil, o.base.completionError(err)
	}
	return result, nil
}

// add hands out tokens.
func (o *pieces) add(tokens []engine.Token) error {
	var p art.Piece
	for _, t := range tokens {
		o.text(t.ID, &p)
		if !o.tokens {
			continue
		}
		p.IDs, p.Logprobs = append(p.IDs, t.ID), append(p.Logprobs, t.Logprob)
		if t.Top != nil {
			p.TopLogprobs = append(p.TopLogprobs, candidates([][]engine.Candidate{t.Top})...)
		}
	}
	o.failed = o.send(p)
	return o.failed
}

// last hands out the text that was held back, if there is any.
func (o *pieces) last(p art.Piece) error {
	if p.Reasoning == "" && p.Content == "" && len(p.ToolCalls) == 0 {
		return nil
	}
	return o.send(p)
}

// send hands out a piece. The first one has the prompt.
func (o *pieces) send(p art.Piece) error {
	p.ID, p.Model = o.id, o.model
	if o.tokens && !o.begun {
		p.PromptIDs = o.prompt
	}
	o.begun = true
	return o.to(p)
}
