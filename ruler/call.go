package ruler

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art"
)

// answer asks a judge, and once more with the defects of its answer when that is of no use.
func (v *vote) answer(ctx context.Context, a *ask, seed uint64) (map[string]rating, error) {
	messages, err := v.r.fit(a)
	if err != nil {
		return nil, err
	}
	q := &Question{Messages: messages, Items: a.items, Chat: v.r.opts.Chat}
	if q.Chat.Seed == nil {
		q.Chat.Seed = &seed
	}
	if v.r.opts.Structured {
		q.Chat.ResponseFormat = &art.ResponseFormat{Type: art.FormatJSONSchema, Name: "scores", Schema: a.schema()}
	}
	if text, ok := v.r.cache.read(v.judge, q); ok {
		if ratings, defects := a.parse(text); len(defects) == 0 {
			v.cost.Cached++
			v.r.spent.add(Usage{Cached: 1})
			return ratings, nil
		}
	}
	first := *q
	for attempt := 0; ; attempt++ {
		reply, err := v.call(ctx, q)
		if err != nil {
			return nil, err
		}
		ratings, defects := a.parse(reply.Text)
		if len(defects) == 0 {
			if err := v.r.cache.write(v.judge, &first, reply.Text); err != nil {
				v.r.opts.Logger.Warn("an answer of the judge was not cached", "err", err)
			}
			return ratings, nil
		}
		if attempt == 1 {
			return nil, &art.Error{Op: "judge", Err: fmt.Errorf("%w: %s: %s", ErrAnswer, v.judge.Name(), list(defects)),
				Hint: "take a stronger judge, raise MaxTokens of Options.Chat if its answers are cut, or set Options.OnFailure"}
		}
		v.again++
		next := *q
		next.Messages = append(append([]art.Message(nil), messages...), art.Assistant(reply.Text), art.User(
			"This answer cannot be used: "+list(defects)+
				". Write the whole answer again, with these defects corrected.\n\n"+a.form()))
		q = &next
	}
}

func list(defects []string) string {
	const most = 8
	if n := len(defects); n > most {
		defects = append(defects[:most:most], fmt.Sprintf("and %d more", n-most))
	}
	return strings.Join(defects, "; ")
}

// call asks once, with retries.
func (v *vote) call(ctx context.Context, q *Question) (*Reply, error) {
	o := &v.r.opts
	rng := rand.New(rand.NewPCG(*q.Chat.Seed, 1))
	for try := 0; ; try++ {
		prompt := 0
		for i := range q.Messages {
			prompt += o.CountTokens(q.Messages[i].Content)
		}
		if err := v.r.spent.take(o, prompt); err != nil {
			return nil, err
		}
		reply, err := bounded(ctx, o.Timeout, func(ctx context.Context) (*Reply, error) { return v.judge.Compare(ctx, q) })
		used := Usage{Calls: 1}
		if reply != nil {
			used.PromptTokens, used.CompletionTokens = reply.Usage.PromptTokens, reply.Usage.CompletionTokens
		}
		v.cost.add(used)
		v.r.spent.settle(used, prompt)
		if err == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if try >= o.Retries || permanent(err) {
			return nil, &art.Error{Op: "judge " + v.judge.Name(), Err: err}
		}
		pause := min(30*time.Second, o.Backoff<<min(try, 20))
		pause -= time.Duration(rng.Float64() * float64(pause) / 2)
		o.Logger.Info("a call of the judge failed and is made again", "judge", v.judge.Name(), "in", pause, "err", err)
		if !sleep(ctx, pause) {
			return nil, context.Cause(ctx)
		}
	}
}

// bounded calls f and leaves it behind when it does not return in time.
func bounded(ctx context.Context, limit time.Duration, f func(context.Context) (*Reply, error)) (*Reply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit,
		fmt.Errorf("no answer within %v: %w", limit, context.DeadlineExceeded))
	defer cancel()
	type outcome struct {
		reply *Reply
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		o := outcome{err: errors.New("the judge panicked or ended its goroutine")}
		defer func() {
			if p := recover(); p != nil {
				o.err = fmt.Errorf("the judge panicked: %v", p)
			}
			done <- o
		}()
		o.reply, o.err = f(ctx)
		if o.reply == nil && o.err == nil {
			o.err = errors.New("the judge returned nothing")
		}
	}()
	select {
	case o := <-done:
		return o.reply, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func permanent(err error) bool {
	for _, target := range []error{
		art.ErrInvalid, art.ErrNotRegistered, art.ErrClosed, art.ErrUnsupported, art.ErrContextLength, ErrBudget,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (u *Usage) add(v Usage) {
	u.Calls, u.Cached = u.Calls+v.Calls, u.Cached+v.Cached
	u.PromptTokens, u.CompletionTokens = u.PromptTokens+v.PromptTokens, u.CompletionTokens+v.CompletionTokens
}

type budget struct {
	mu       sync.Mutex
	spent    Usage
	calls    int // made, and being made
	reserved int // estimated tokens of prompts of calls that are being made
}

func (b *budget) usage() Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.spent
}

func (b *budget) add(u Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent.add(u)
}

// take reserves a call whose prompt has about so many tokens, or tells that the budget does not have it.
func (b *budget) take(o *Options, prompt int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	tokens := b.spent.PromptTokens + b.spent.CompletionTokens + b.reserved
	var err error
	switch {
	case o.MaxCalls > 0 && b.calls >= o.MaxCalls:
		err = fmt.Errorf("%w: %d calls were made", ErrBudget, b.calls)
	case o.MaxTokens > 0 && tokens+prompt > o.MaxTokens:
		err = fmt.Errorf("%w: %d tokens were used, and a prompt of about %d is next", ErrBudget, tokens, prompt)
	default:
		b.calls++
		b.reserved += prompt
		return nil
	}
	return &art.Error{Op: "judge", Err: err, Hint: "raise MaxCalls or MaxTokens of ruler.Options, or judge fewer groups"}
}

// settle replaces a reservation by what the call used.
func (b *budget) settle(u Usage, prompt int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved -= prompt
	b.spent.add(u)
}
