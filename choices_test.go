package art_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// The first reply is that of Complete; all have different seeds, which do not depend on their number, and all are
// recorded.
func TestModel_CompleteN(t *testing.T) {
	m := registered(t, &arttest.Backend{Reply: func(
		_ context.Context, _ *art.Model, req *art.ChatRequest,
	) (art.Message, error) {
		return art.Assistant(fmt.Sprint(req.Settings.Seed)), nil
	}}, nil)
	h, opts := &art.History{Messages: []art.Message{art.User("u")}}, &art.ChatOptions{Seed: ptr(uint64(7))}
	var replies []*art.ChatResponse
	recorded, err := art.Record(t.Context(), func(ctx context.Context) (err error) {
		replies, err = m.CompleteN(ctx, h, 5, opts)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	fewer, err := m.CompleteN(t.Context(), h, 2, opts)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, r := range replies {
		seen[r.Message.Content] = true
		if history := recorded.Histories()[i]; history.Messages[1].Sample != r.Message.Sample {
			t.Errorf("history %d has another sample", i)
		}
	}
	if len(seen) != 5 || replies[0].Message.Content != "7" || fewer[1].Message.Content != replies[1].Message.Content {
		t.Errorf("seeds %v", seen)
	}
	_, err = m.CompleteN(t.Context(), h, 0, nil)
	wantErr(t, err, art.ErrInvalid, "n is 0")
}

// The error that ends the others is returned, not theirs.
func TestModel_CompleteNFails(t *testing.T) {
	boom := errors.New("boom")
	m := registered(t, &arttest.Backend{Reply: func(
		ctx context.Context, _ *art.Model, req *art.ChatRequest,
	) (art.Message, error) {
		if req.Settings.Seed == 7 {
			return art.Message{}, boom
		}
		<-ctx.Done()
		return art.Message{}, ctx.Err()
	}}, nil)
	h := &art.History{Messages: []art.Message{art.User("u")}}
	_, err := m.CompleteN(t.Context(), h, 3, &art.ChatOptions{Seed: ptr(uint64(7))})
	if !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
}

// The pieces of each reply are the reply, the last one has it as a whole, and the replies are those of CompleteN.
func TestModel_StreamN(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	h, opts := &art.History{Messages: []art.Message{art.User("u")}}, &art.ChatOptions{Seed: ptr(uint64(7))}
	want, err := m.CompleteN(t.Context(), h, 4, opts)
	if err != nil {
		t.Fatal(err)
	}
	texts, ended := map[int]string{}, map[int]bool{}
	got, err := m.StreamN(t.Context(), h, 4, opts, func(p art.ChoicePiece) error {
		if ended[p.Choice] {
			t.Errorf("choice %d: a piece after the last one", p.Choice)
		}
		texts[p.Choice] += p.Content
		ended[p.Choice] = p.End != nil
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range got {
		if r.Message.Content != want[i].Message.Content || texts[i] != r.Message.Content || !ended[i] {
			t.Errorf("choice %d: %q, pieces %q, want %q", i, r.Message.Content, texts[i], want[i].Message.Content)
		}
	}
	boom := errors.New("boom")
	_, err = m.StreamN(t.Context(), h, 4, opts, func(art.ChoicePiece) error { return boom })
	if !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
	_, err = m.StreamN(t.Context(), h, 0, nil, nil)
	wantErr(t, err, art.ErrInvalid, "n is 0", "piece is nil")
}

// With a seed, a reply to one of several prompts does not depend on the others; without, equal prompts have different
// replies. Only the first reply to a prompt has its logprobs.
func TestModel_SampleN(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	a, b := []int32("a"), []int32("bc")
	text := func(prompts [][]int32, n int, opts *art.ChatOptions) (texts []string) {
		t.Helper()
		replies, err := m.SampleN(t.Context(), prompts, n, opts, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range replies {
			texts = append(texts, r.Message.Content)
			if opts != nil && (r.PromptLogprobs != nil) != (i%n == 0) {
				t.Errorf("reply %d has the logprobs %v", i, r.PromptLogprobs)
			}
		}
		return texts
	}
	opts := &art.ChatOptions{Seed: ptr(uint64(7)), PromptLogprobs: ptr(0)}
	both := text([][]int32{a, b}, 2, opts)
	if alone := text([][]int32{b}, 2, opts); both[2] != alone[0] || both[3] != alone[1] || both[2] == both[3] {
		t.Errorf("%q, alone %q", both, alone)
	}
	if same := text([][]int32{a, a}, 1, nil); same[0] == same[1] {
		t.Errorf("%q", same)
	}
	_, err := m.SampleN(t.Context(), [][]int32{a, {}}, 1, nil, nil)
	wantErr(t, err, art.ErrInvalid, "no token ids")
}

// A panic of a backend is one of the caller's goroutine, who can recover it, however many replies are asked for.
func TestModel_CompleteN_Panic(t *testing.T) {
	m := registered(t, &arttest.Backend{Reply: func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		panic("broken backend")
	}}, nil)
	for n := 1; n <= 3; n++ {
		var v any
		func() {
			defer func() { v = recover() }()
			_, _ = m.CompleteN(t.Context(), &art.History{Messages: []art.Message{art.User("u")}}, n, nil)
		}()
		if !strings.Contains(fmt.Sprint(v), "broken backend") {
			t.Errorf("%d replies: %v", n, v)
		}
	}
}
