package server

import (
	"context"
	"net/http"

	"github.com/goart-dev/art"
)

// Metrics observes the requests for replies, and serves what it has counted at GET /metrics. Package
// backend/server/metrics has one.
type Metrics interface {
	http.Handler
	// Begin is called when a request for a reply of a model begins. It is called concurrently.
	Begin(model string) Observation
}

// Observation is one request for a reply.
type Observation interface {
	// Piece is called for each piece of a streamed reply with the number of its tokens.
	Piece(tokens int)
	// End is called once. err is not nil when there is no reply, because of the model or because the client has gone.
	End(reply *art.ChatResponse, err error)
}

// observed reports what a completion does.
func (h *handler) observed(m *art.Model, ask completion) completion {
	if h.Metrics == nil {
		return ask
	}
	return func(ctx context.Context, piece func(art.Piece) error) (reply *art.ChatResponse, err error) {
		o := h.Metrics.Begin(m.Name())
		defer func() { o.End(reply, err) }()
		if piece == nil {
			return ask(ctx, nil)
		}
		return ask(ctx, func(p art.Piece) error {
			o.Piece(len(p.IDs))
			return piece(p)
		})
	}
}

// metrics serves what was counted.
func (h *handler) metrics(w http.ResponseWriter, r *http.Request) error {
	h.Metrics.ServeHTTP(w, r)
	return nil
}
