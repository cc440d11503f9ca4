package art

import (
	"context"
	"errors"
	"sync"
	"time"
)

// CompleteN asks the model for n replies to h at once, which it does not change: n is OpenAI's field of that name. The
// first is that of [Model.Complete]; each has its own seed, derived from that one, in the settings of its [Sample]. A
// backend that shares prefixes computes the prompt once. opts may be nil. Replies are recorded in their order when ctx
// comes from [Record].
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
	replies, err := m.completeAll(ctx, b, request, n)
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

// completeAll sends a request n times with different seeds.
func (m *Model) completeAll(ctx context.Context, b Backend, request *ChatRequest, n int) ([]*ChatResponse, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	replies, errs := make([]*ChatResponse, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			one := *request
			one.Messages, one.Tools = cloneMessages(request.Messages), cloneTools(request.Tools)
			if i > 0 {
				one.Settings.Seed = mix(seedChoice, one.Settings.Seed, uint64(i))
			}
			start := time.Now()
			replies[i], errs[i] = b.Complete(ctx, m, &one)
			m.tellCompletion(ctx, start, &one, replies[i], errs[i])
			if errs[i] != nil {
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
