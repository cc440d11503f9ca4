package art_test

import (
	"context"
	"errors"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// thinker replies with all that a message can have.
func thinker(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
	return art.Message{
		Role: art.RoleAssistant, Reasoning: "left?", Content: "Yes.",
		ToolCalls: []art.ToolCall{{ID: "1", Name: "go", Arguments: `{}`}, {ID: "2", Name: "look", Arguments: `{}`}},
	}, nil
}

// join collects pieces and returns what they are together.
func join(pieces []art.Piece) (art.Message, art.Sample) {
	m, s := art.Message{Role: art.RoleAssistant}, art.Sample{}
	for _, p := range pieces {
		m.Reasoning += p.Reasoning
		m.Content += p.Content
		m.ToolCalls = append(m.ToolCalls, p.ToolCalls...)
		s.PromptIDs = append(s.PromptIDs, p.PromptIDs...)
		s.IDs = append(s.IDs, p.IDs...)
		s.Logprobs = append(s.Logprobs, p.Logprobs...)
	}
	return m, s
}

// With a Streamer and without one, the pieces together are the reply that Complete gives, and it is recorded.
func TestModel_StreamEqualsComplete(t *testing.T) {
	fake := &arttest.Backend{Reply: thinker}
	for name, b := range map[string]art.Backend{"streamer": fake, "whole": struct{ art.Backend }{fake}} {
		t.Run(name, func(t *testing.T) {
			m := art.NewModel(name, nil)
			if err := m.Register(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			h, seed := &art.History{Messages: []art.Message{art.User("u")}}, uint64(7)
			opts := &art.ChatOptions{Seed: &seed}
			want, err := m.Complete(t.Context(), h, opts)
			if err != nil {
				t.Fatal(err)
			}
			var pieces []art.Piece
			recorded, err := art.Record(t.Context(), func(ctx context.Context) error {
				got, err := m.Stream(ctx, h, opts, func(p art.Piece) error { pieces = append(pieces, p); return nil })
				wantEqual(t, "response", got, want)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, "recorded", recorded.Messages[1], want.Message)
			message, sample := join(pieces)
			message.Sample, sample.Settings, sample.Finish = &sample, want.Message.Sample.Settings, want.Finish
			wantEqual(t, "joined", message, want.Message)
			wantEqual(t, "head", []string{pieces[0].ID, pieces[0].Model}, []string{want.ID, want.Model})
			if isWhole := len(pieces) == 1; isWhole != (name == "whole") {
				t.Errorf("%d pieces", len(pieces))
			}
		})
	}
}

// The error of a piece ends the reply, which is not recorded; so does the end of the context.
func TestModel_StreamEnds(t *testing.T) {
	m := registered(t, &arttest.Backend{Reply: thinker}, nil)
	h, calls, gone := &art.History{Messages: []art.Message{art.User("u")}}, 0, errors.New("gone")
	_, err := art.Record(t.Context(), func(ctx context.Context) error {
		_, err := m.Stream(ctx, h, nil, func(art.Piece) error { calls++; return gone })
		if !errors.Is(err, gone) {
			t.Errorf("error %v", err)
		}
		return nil
	})
	wantErr(t, err, art.ErrNothingRecorded)
	wantEqual(t, "calls", calls, 1)

	ctx, cancel := context.WithCancel(t.Context())
	_, err = m.Stream(ctx, h, nil, func(art.Piece) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	_, err = m.Stream(t.Context(), h, nil, nil)
	wantErr(t, err, art.ErrInvalid, "piece is nil")
	_, err = art.NewModel("new", nil).Stream(t.Context(), h, nil, func(art.Piece) error { return nil })
	wantErr(t, err, art.ErrNotRegistered)
}
