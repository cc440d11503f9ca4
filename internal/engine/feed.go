package engine

import (
	"context"
	"sync"
)

// feed hands the tokens of one reply from the loop to its caller. The loop never waits: tokens that the caller has not
// taken are kept, of which there are at most as many as the reply has.
type feed struct {
	mu     sync.Mutex
	tokens []Token
	wake   chan struct{} // has an element if there may be tokens
}

// push adds a token. A nil feed takes none.
func (f *feed) push(t Token) {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.tokens = append(f.tokens, t)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns the tokens since the last call.
func (f *feed) take() []Token {
	f.mu.Lock()
	defer f.mu.Unlock()
	tokens := f.tokens
	f.tokens = nil
	return tokens
}

// Stream is [Engine.Complete] that calls emit, in the goroutine of the caller, with the tokens of the reply as they
// are sampled: each once, in order, all before it returns a result.
//
// A slow emit stalls nobody, not even its own reply: it is called with all tokens that were sampled since its last
// call. If emit returns an error the request is cancelled, and that is the error of Stream.
func (e *Engine) Stream(ctx context.Context, r Request, emit func([]Token) error) (*Result, error) {
	if err := r.check(e.opts); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the loop drops the job before its next round
	j := newJob(ctx, r, e.opts)
	j.feed = &feed{wake: make(chan struct{}, 1)}
	if err := e.submit(j); err != nil {
		return nil, err
	}
	for {
		select {
		case <-j.feed.wake:
			if err := j.feed.emit(emit); err != nil {
				return nil, err
			}
		case o := <-j.reply:
			if err := j.feed.emit(emit); err != nil {
				return nil, err
			}
			return o.result, o.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// emit calls f with the tokens since the last call, if there are any.
func (f *feed) emit(to func([]Token) error) error {
	if tokens := f.take(); len(tokens) > 0 {
		return to(tokens)
	}
	return nil
}
