package servertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
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

func (b *counting) Register(context.Context, *art.Model) (int, error) { return 3, nil }

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

// faults cuts connections of rollouts: before a request is served, or in the middle of the answer. Other requests have
// no faults.
type faults struct {
	next    http.Handler
	dice    *dice
	mu      sync.Mutex
	cuts    int
	running map[string]int // requests, by rollout
	ended   *sync.Cond     // a request has, by mu. A WaitGroup must not be added to while it is waited for
}

func (f *faults) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rest, played := strings.CutPrefix(r.URL.Path, "/r/")
	if !played {
		f.next.ServeHTTP(w, r)
		return
	}
	id, _, _ := strings.Cut(rest, "/")
	f.count(id, 1)
	defer f.count(id, -1)
	if f.dice.roll(0.02) {
		f.cut()
	}
	out := &cutWriter{ResponseWriter: w, faults: f, left: -1}
	if f.dice.roll(0.04) {
		out.left = f.dice.below(400)
	}
	f.next.ServeHTTP(out, r)
}

// count adds to the requests of a rollout that are being served.
func (f *faults) count(id string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[id] += n
	f.ended.Broadcast()
}

// wait returns when no request of a rollout is being served.
func (f *faults) wait(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.running[id] > 0 {
		f.ended.Wait()
	}
}

func (f *faults) cut() {
	f.mu.Lock()
	f.cuts++
	f.mu.Unlock()
	panic(http.ErrAbortHandler)
}

// cutWriter closes the connection after some bytes.
type cutWriter struct {
	http.ResponseWriter
	faults *faults
	left   int // bytes; negative is never
}

func (w *cutWriter) Write(data []byte) (int, error) {
	if w.left < 0 {
		return w.ResponseWriter.Write(data)
	}
	if w.left < len(data) {
		_, _ = w.ResponseWriter.Write(data[:w.left])
		_ = http.NewResponseController(w.ResponseWriter).Flush() // the client has the beginning
		w.faults.cut()
	}
	w.left -= len(data)
	return w.ResponseWriter.Write(data)
}

// Unwrap is for [http.ResponseController].
func (w *cutWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
