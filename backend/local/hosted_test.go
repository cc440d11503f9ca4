package local

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/openai"
)

// TestHandler_AsHostedModel: backend/openai with this backend's handler as its server gives the answers of this
// backend, tokens and logprobs included.
func TestHandler_AsHostedModel(t *testing.T) {
	b, err := Open(t.Context(), &Options{Dir: t.TempDir(), Slots: 2, Context: 256})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	m := art.NewModel("served", nil)
	require.NoError(t, m.Register(t.Context(), b))
	handler, err := b.Handler(&art.HandlerOptions{Keys: []string{"a-key"}})
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)

	remote, err := openai.Open(t.Context(), &openai.Options{
		BaseURL: server.URL + "/v1", Key: "a-key", Dir: t.TempDir(), Extra: []byte(openai.ExactTokens),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, remote.Close()) })
	hosted := art.NewModel("hosted", &art.ModelOptions{Base: "served"})
	require.NoError(t, hosted.Register(t.Context(), remote))

	schema := []byte(`{"type":"object","properties":{"b":{},"a":{}}}`)
	tool := art.Tool{Name: "add", Description: "Adds.", Parameters: schema}
	for _, h := range []*art.History{ask("Hello?"), ask("What is 1+1?", tool)} {
		opts := &art.ChatOptions{Seed: new(uint64(1<<63 + 3)), MaxTokens: new(12)}
		want, err := m.Complete(t.Context(), h, opts)
		require.NoError(t, err)
		got, err := hosted.Complete(t.Context(), h, opts)
		require.NoError(t, err)
		require.Equal(t, want.Message.Content, got.Message.Content)
		require.Equal(t, want.Message.Sample, got.Message.Sample)
		require.Equal(t, want.Finish, got.Finish)
		require.Equal(t, want.Usage.CompletionTokens, got.Usage.CompletionTokens)
	}
	_, err = hosted.Complete(t.Context(), ask("Hello?"), &art.ChatOptions{Stop: []string{"1", "2", "3", "4", "5"}})
	require.ErrorIs(t, err, art.ErrInvalid)
}
