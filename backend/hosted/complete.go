package hosted

import (
	"context"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/callid"
)

// AssumedReply is how many tokens a reply without MaxTokens is estimated at.
const AssumedReply = 1024

// call is one completion.
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
	ctx, cancel := b.bind(ctx)
	defer cancel()
	c := &call{entry: e, base: e.base, req: req}
	if err := b.prepare(ctx, c); err != nil {
		return nil, err
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

// bind ends a context with the backend too.
func (b *Backend) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(b.life, func() { cancel(context.Cause(b.life)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// prepare checks a call and estimates it.
func (b *Backend) prepare(ctx context.Context, c *call) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := b.checkContext(c); err != nil {
		return err
	}
	c.prompt, c.reply = requestBytes(c.req)/bytesPerToken, c.req.Settings.MaxTokens
	if c.reply == 0 {
		c.reply = AssumedReply
	}
	c.price, c.priced = b.opts.Prices.of(c.base)
	if b.opts.MaxSpend > 0 && !c.priced {
		err := fmt.Errorf("%w: the price of %q is not known, so MaxSpend cannot be kept", art.ErrInvalid, c.base)
		return &art.Error{Op: "complete", Err: err, Hint: "add the model to Prices of the Options"}
	}
	return nil
}

// reserve sets aside what a call may cost.
func (b *Backend) reserve(c *call) error {
	cost := c.price.cost(art.Usage{PromptTokens: c.prompt, CompletionTokens: c.reply})
	if err := b.meter.reserve(cost); err != nil {
		return &art.Error{Op: "complete", Err: err, Hint: "raise MaxSpend of the Options"}
	}
	c.reserved = cost
	return nil
}

// answer sends a call until it is answered, and counts it.
func (b *Backend) answer(ctx context.Context, c *call) (*Reply, error) {
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := b.reserve(c); err != nil {
		return nil, err
	}
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
