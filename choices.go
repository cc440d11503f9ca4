package art

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// CompleteN asks the model for n replies to h at once, which it does not change: n is OpenAI's field of that name. The
// first is that of [Model.Complete]; each has its own seed, derived from that one, in the settings of its [Sample]. A
// backend that shares prefixes computes the prompt once. Only the first has the logprobs of the prompt, if opts asks
// for them. opts may be nil. Replies are recorded in their order when ctx comes from [Record].
//
// Errors are those of Complete; n must be at least 1. The first error ends the other replies.
func (m *Model) CompleteN(ctx context.Context, h *History, n int, opts *ChatOptions) ([]*ChatResponse, error) {
	b, err := m.registered("complete")
	if err != nil {
		return nil, err
	}
	var p problems
	p.check(n >= 1, "n is %d, want at least 1", n)
	if err := p.err("complete", "ask for at least one reply"); err != nil {
		return nil, err
	}
	request, err := m.request(ctx, h, opts)
	if err != nil {
		return nil, err
	}
	return m.answerAll(ctx, n, request, func(ctx context.Context, _ int, one *ChatRequest) (*ChatResponse, error) {
		return b.Complete(ctx, m, one)
	})
}

// ChoicePiece is a [Piece] of one of several replies.
type ChoicePiece struct {
	// Choice is the index of the reply.
	Choice int
	Piece
	// End is the whole reply, in a last piece that has nothing else; nil before. An error of that piece is ignored: the
	// reply is complete, and recorded.
	End *ChatResponse
}

// StreamN is [Model.CompleteN] that hands out the replies piece by piece while they are sampled, as [Model.Stream]
// does. Pieces of different replies come in any order, one call of piece at a time.
func (m *Model) StreamN(
	ctx context.Context, h *History, n int, opts *ChatOptions, piece func(ChoicePiece) error,
) ([]*ChatResponse, error) {
	b, err := m.registered("stream")
	if err != nil {
		return nil, err
	}
	var p problems
	p.check(n >= 1, "n is %d, want at least 1", n)
	p.check(piece != nil, "piece is nil")
	if err := p.err("stream", "ask for at least one reply, and pass a function"); err != nil {
		return nil, err
	}
	request, err := m.request(ctx, h, opts)
	if err != nil {
		return nil, err
	}
	streamer, out := streamerOf(b), newChoicePieces(piece)
	return m.answerAll(ctx, n, request, func(ctx context.Context, i int, one *ChatRequest) (*ChatResponse, error) {
		r, err := streamer.Stream(ctx, m, one, out.of(i))
		return out.end(i, r, err)
	})
}

// SampleN is [Model.Sample] for several prompts at once, with n replies to each: reply i to prompt k has the index
// k n + i. The first one has the seed of the call, and the others have seeds that are derived from it; where the seed
// is set, all prompts have the same n seeds, so that a reply does not depend on the other prompts. Only the first reply
// to a prompt has the logprobs of the prompt, if opts asks for them. piece may be nil.
func (m *Model) SampleN(
	ctx context.Context, prompts [][]int32, n int, opts *ChatOptions, piece func(ChoicePiece) error,
) ([]*ChatResponse, error) {
	sampler, settings, err := m.sampling(ctx, prompts, opts)
	if err != nil {
		return nil, err
	}
	var p problems
	p.check(n >= 1, "n is %d, want at least 1", n)
	if err := p.err("sample", "ask for at least one reply"); err != nil {
		return nil, err
	}
	if piece == nil {
		piece = func(ChoicePiece) error { return nil }
	}
	out, seeded := newChoicePieces(piece), opts.hasSeed() || m.opts.Chat.hasSeed()
	return atOnce(ctx, n*len(prompts), func(ctx context.Context, i int) (*ChatResponse, error) {
		s := settings
		if i%n > 0 {
			s.PromptLogprobs = nil // they are those of the first reply
		}
		if seeded {
			s.Seed = choiceSeed(settings.Seed, i%n)
		} else {
			s.Seed = choiceSeed(settings.Seed, i)
		}
		r, err := sampler.Sample(ctx, m, slices.Clone(prompts[i/n]), s, out.of(i))
		return out.end(i, r, err)
	})
}

// answerAll asks for n replies to a request at once, with different seeds, and records them in their order.
func (m *Model) answerAll(
	ctx context.Context, n int, request *ChatRequest,
	ask func(ctx context.Context, i int, one *ChatRequest) (*ChatResponse, error),
) ([]*ChatResponse, error) {
	replies, err := atOnce(ctx, n, func(ctx context.Context, i int) (*ChatResponse, error) {
		one := *request
		one.Messages, one.Tools = cloneMessages(request.Messages), cloneTools(request.Tools)
		one.Settings.Seed = choiceSeed(request.Settings.Seed, i)
		if i > 0 {
			one.Settings.PromptLogprobs = nil // they are those of the first
		}
		start := time.Now()
		r, err := ask(ctx, i, &one)
		m.tellCompletion(ctx, start, &one, r, err)
		return r, err
	})
	if err != nil {
		return nil, err
	}
	for _, r := range replies {
		if err := recordCompletion(ctx, request, r.Message); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// choiceSeed derives the seed of the i-th reply to a request; the first one has that of the request.
func choiceSeed(seed uint64, i int) uint64 {
	if i == 0 {
		return seed
	}
	return mix(seedChoice, seed, uint64(i))
}

// atOnce asks for n replies at the same time, one alone in the goroutine of the caller. The first error ends the
// others and is returned.
func atOnce(
	ctx context.Context, n int, ask func(ctx context.Context, i int) (*ChatResponse, error),
) ([]*ChatResponse, error) {
	if n == 1 {
		r, err := ask(ctx, 0)
		if err != nil {
			return nil, err
		}
		return []*ChatResponse{r}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	replies, errs := make([]*ChatResponse, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if replies[i], errs[i] = ask(ctx, i); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	all.Wait()
	if errors.Join(errs...) != nil {
		return nil, context.Cause(ctx)
	}
	return replies, nil
}

// choicePieces hands out the pieces of several replies, one at a time.
type choicePieces struct {
	to    func(ChoicePiece) error
	mu    sync.Mutex
	begun map[int]bool // replies with a piece
}

func newChoicePieces(to func(ChoicePiece) error) *choicePieces {
	return &choicePieces{to: to, begun: map[int]bool{}}
}

// of returns what takes the pieces of one reply.
func (c *choicePieces) of(choice int) func(Piece) error {
	return func(p Piece) error { return c.send(ChoicePiece{Choice: choice, Piece: p}) }
}

func (c *choicePieces) send(p ChoicePiece) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun[p.Choice] = true
	return c.to(p)
}

// end hands out the last piece of a reply, unless there is an error. One that had no piece, because it is empty, is
// whole before.
func (c *choicePieces) end(choice int, r *ChatResponse, err error) (*ChatResponse, error) {
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	begun := c.begun[choice]
	c.mu.Unlock()
	if !begun {
		err = c.send(ChoicePiece{Choice: choice, Piece: r.Piece()})
	}
	if err == nil {
		_ = c.send(ChoicePiece{Choice: choice, Piece: Piece{ID: r.ID, Model: r.Model}, End: r}) // the reply is complete
	}
	return r, err
}
