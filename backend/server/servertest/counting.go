package servertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/goart-dev/art"
)

// dice are random numbers for several goroutines.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func newDice(seed, stream uint64) *dice { return &dice{rng: rand.New(rand.NewPCG(seed, stream))} }

// roll is true with probability p.
func (d *dice) roll(p float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.Float64() < p
}

// below is a number below n.
func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// counting is a backend whose n-th reply is the text "n", sampled as the token n. Every third reply to a request with
// tools calls the first of them. It fails at random.
type counting struct {
	art.Backend // the methods that are not called stay nil
	dice        *dice
	mu          sync.Mutex
	calls       int32
	failures    int
	ids         []int32 // of completions that were returned
}

// Register implements [art.Backend].
func (b *counting) Register(context.Context, *art.Model) (int, error) { return 3, nil }

// Complete implements [art.Backend].
func (b *counting) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	return b.Stream(ctx, m, req, func(art.Piece) error { return nil })
}

// Stream implements driver.Streamer: the digits of the text are pieces. It fails before it has sampled, or in the
// middle.
func (b *counting) Stream(
	ctx context.Context, m *art.Model, req *art.ChatRequest, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	n, fails := b.next()
	if fails && b.dice.roll(0.5) {
		return nil, errors.New("out of memory") // status 500: clients send the request again
	}
	select {
	case <-time.After(time.Duration(b.dice.below(1000)) * time.Microsecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r := b.reply(n, m, req)
	s := r.Message.Sample
	p := art.Piece{ID: r.ID, Model: r.Model, PromptIDs: s.PromptIDs, IDs: s.IDs, Logprobs: s.Logprobs}
	if err := piece(p); err != nil {
		return nil, err
	}
	for i, digit := range r.Message.Content {
		if fails && i == len(r.Message.Content)-1 {
			return nil, errors.New("out of memory")
		}
		if err := piece(art.Piece{ID: r.ID, Model: r.Model, Content: string(digit)}); err != nil {
			return nil, err
		}
	}
	if len(r.Message.ToolCalls) > 0 {
		if err := piece(art.Piece{ID: r.ID, Model: r.Model, ToolCalls: slices.Clone(r.Message.ToolCalls)}); err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ids = append(b.ids, n)
	return r, nil
}

// next returns the number of a reply, and whether it fails.
func (b *counting) next() (n int32, fails bool) {
	fails = b.dice.roll(0.05)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if fails {
		b.failures++
	}
	return b.calls, fails
}

// reply returns the n-th reply.
func (b *counting) reply(n int32, m *art.Model, req *art.ChatRequest) *art.ChatResponse {
	reply, finish := art.Assistant(fmt.Sprint(n)), art.FinishStop
	if n%3 == 0 && len(req.Tools) > 0 {
		reply.ToolCalls = []art.ToolCall{{ID: fmt.Sprint("call-", n), Name: req.Tools[0].Name, Arguments: `{"at": 1}`}}
		finish = art.FinishToolCalls
	}
	reply.Sample = &art.Sample{
		PromptIDs: []int32{7}, IDs: []int32{n}, Logprobs: []float32{-float32(n) / 7}, Settings: req.Settings, Step: 3,
		Finish: finish,
	}
	return &art.ChatResponse{
		ID: fmt.Sprint("chatcmpl-", n), Model: m.Name() + "@3", Message: reply, Finish: finish,
		Usage: art.Usage{PromptTokens: 1, CompletionTokens: 1},
	}
}

// returned returns the ids of completions that were returned, in ascending order.
func (b *counting) returned() []int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(slices.Values(b.ids))
}
