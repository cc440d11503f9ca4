package backend_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/backendtest"
	"github.com/goart-dev/art/backend/local"
)

// counting is the local backend with a meter, as in docs/backends.md. Embedding the type keeps its optional interfaces.
type counting struct {
	*local.Backend
	tokens atomic.Int64
}

func (c *counting) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	response, err := c.Backend.Complete(ctx, m, req)
	if err == nil {
		c.tokens.Add(int64(response.Usage.CompletionTokens))
	}
	return response, err
}

func open(t *testing.T) art.Backend {
	inner, err := local.Open(t.Context(), &local.Options{Dir: t.TempDir(), Slots: 4, Context: 256})
	if err != nil {
		t.Fatal(err)
	}
	return &counting{Backend: inner}
}

func TestContract(t *testing.T) {
	backendtest.Run(t, open)
}

func TestLearning(t *testing.T) { // a small run on which any correct backend improves
	backendtest.RunLearning(t, open, nil)
}
