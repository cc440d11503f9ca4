package server

import (
	"context"
	"net/http"
	"testing"

	"github.com/goart-dev/art"
)

// TestUsed: what a request took is told once, as its answer tells it, for one body and for a stream.
func TestUsed(t *testing.T) {
	m := register(t, says(art.Message{Content: "Hi"}), "player")
	var got []art.Usage
	h := Routes(func() []*art.Model { return []*art.Model{m} }, &Config{
		Tokens: func(_ *art.Model, id int32) []byte { return []byte{byte(id)} },
		Used:   func(_ context.Context, u art.Usage) { got = append(got, u) },
	})
	for body, want := range map[string]art.Usage{
		`"prompt": "Go"`:                        {PromptTokens: 2, CompletionTokens: 2},
		`"prompt": ["Go", "on"], "n": 3`:        {PromptTokens: 4, CompletionTokens: 12},
		`"prompt": "Go", "n": 2, "stream":true`: {PromptTokens: 2, CompletionTokens: 4},
	} {
		got = nil
		w := postTo(h, completionsPath, `{"model": "player", `+body+`}`)
		if w.Code != http.StatusOK || len(got) != 1 || got[0] != want {
			t.Errorf("%s: status %d, used %+v, want %+v: %s", body, w.Code, got, want, w.Body)
		}
	}
	got = nil
	if w := postTo(h, completionsPath, `{"model": "other", "prompt": "Go"}`); len(got) != 0 {
		t.Errorf("status %d, used %+v", w.Code, got)
	}
}
