package art_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/arttest"
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
