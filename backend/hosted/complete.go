package hosted

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/callid"
)

// assumedReply is how many tokens a reply without MaxTokens is estimated at.
const assumedReply = 1024

type call struct {
	entry    *entry
	base     string
	req      *art.ChatRequest
	price    Price
	priced   bool
	prompt   int     // estimated tokens
	reply    int     // estimated tokens
	reserved float64 // of the spending limit
}

// Complete asks the service, again after failures that may pass; see package hosted. It returns
// [art.ErrContextLength], [ErrSpendingLimit], [art.ErrInvalid] for a request that the service refuses, [ErrService]
// for one that it fails to answer, and the error of ctx. When the service answers with token ids and logprobs, and
// both are those of the distribution that was sampled from, the reply has a Sample.
func (b *Backend) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	e, err := b.begin("complete", m)
	if err != nil {
		return nil, err
	}
	defer b.busy.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(b.life, func() { cancel(context.Cause(b.life)) })()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c := &call{entry: e, base: e.base, req: req, reply: cmp.Or(req.Settings.MaxTokens, assumedReply)}
	if err := b.checkContext(c); err != nil {
		return nil, err
	}
	c.prompt = requestBytes(req) / bytesPerToken
	if c.price, c.priced = b.opts.Prices.of(c.base); b.opts.MaxSpend > 0 && !c.priced {
		err := fmt.Errorf("%w: the price of %q is not known, so MaxSpend cannot be kept", art.ErrInvalid, c.base)
		return nil, &art.Error{Op: "complete", Err: err, Hint: "add the model to Prices of the Options"}
	}
	reply, err := b.answer(ctx, c)
	if err != nil {
		return nil, b.failed(ctx, c, err)
	}
	if m.Options().Frozen {
		reply.Message.Sample = nil
	}
	callid.Complete(reply.Message.ToolCalls, req)
	response := &art.ChatResponse{
		ID: reply.ID, Model: m.Name() + "@0", Message: reply.Message, Finish: reply.Finish,
	}
	if reply.Usage != nil {
		response.Usage = *reply.Usage
	}
	return response, nil
}

// answer sends a call until it is answered, and counts it.
func (b *Backend) answer(ctx context.Context, c *call) (*Reply, error) {
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	cost := c.price.cost(art.Usage{PromptTokens: c.prompt, CompletionTokens: c.reply})
	if err := b.meter.reserve(cost); err != nil {
		return nil, &art.Error{Op: "complete", Err: err, Hint: "raise MaxSpend of the Options"}
	}
	c.reserved = cost
	reply, err := b.attempts(ctx, c)
	if err != nil {
		b.meter.count(&c.entry.usage, c.reserved, func(u *Usage) {
			if ctx.Err() == nil {
				u.Failures++
			}
		})
		return nil, err
	}
	settled := c.reserved
	if reply.Usage == nil {
		settled = 0 // the cost is not known, and the estimate stays reserved
	}
	b.meter.count(&c.entry.usage, settled, func(u *Usage) { u.answered(reply.Usage, c.price, c.priced) })
	return reply, nil
}

// attempt sends a call once, when the rate allows it.
func (b *Backend) attempt(ctx context.Context, c *call) (*Reply, error) {
	s, err := b.window.enter(ctx, c.prompt+c.reply)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.opts.Timeout, &timeoutError{b.opts.Timeout})
	defer cancel()
	reply, err := b.service.Complete(ctx, c.base, c.req)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	if reply.Usage != nil {
		b.window.settle(s, reply.Usage.PromptTokens+reply.Usage.CompletionTokens)
	}
	return reply, nil
}

// period is the time over which rates are bounded.
const period = time.Minute

// window bounds the requests and tokens of any period. Those that wait are let through in the order of their arrival.
type window struct {
	requests, tokens int           // bounds; 0 is none
	turn             chan struct{} // held by the first that waits

	mu   sync.Mutex
	sent []*sending // within the last period, in order of time
}

type sending struct {
	at     time.Time
	tokens int
}

func newWindow(requests, tokens int) window {
	return window{requests: requests, tokens: tokens, turn: make(chan struct{}, 1)}
}

// enter waits until a request of so many tokens fits.
func (w *window) enter(ctx context.Context, tokens int) (*sending, error) {
	if w.requests == 0 && w.tokens == 0 {
		return &sending{}, nil
	}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for {
		s, wait := w.admit(time.Now(), tokens)
		if s != nil {
			return s, nil
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// admit notes a request if it fits, and otherwise returns how long to wait before the next try.
func (w *window) admit(now time.Time, tokens int) (*sending, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.sent) > 0 && now.Sub(w.sent[0].at) >= period {
		w.sent = w.sent[1:]
	}
	sum := tokens
	for _, s := range w.sent {
		sum += s.tokens
	}
	full := w.requests > 0 && len(w.sent) >= w.requests || w.tokens > 0 && sum > w.tokens
	if full && len(w.sent) > 0 {
		return nil, period - now.Sub(w.sent[0].at)
	}
	s := &sending{now, tokens}
	w.sent = append(w.sent, s)
	return s, 0
}

// settle replaces the estimate of a request by what it took.
func (w *window) settle(s *sending, tokens int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.tokens = tokens
}

// sleep waits, or returns the cause when ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
