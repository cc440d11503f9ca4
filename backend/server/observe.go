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
	// Begin is called for each reply of a model when the request for it begins. It is called concurrently.
	Begin(model string) Observation
}

// EngineMetrics are [Metrics] that show what engines do as well.
type EngineMetrics interface {
	Metrics
	// Watch adds engines, which are asked at each GET /metrics. Their names must differ from those of other calls.
	Watch(engines func() []EngineStats)
}

// EngineStats are what the engine of a base model does for the models on it.
type EngineStats struct {
	Base             string // name of the base model
	Running, Waiting int    // requests
	Blocks           int    // of the KV cache; all but Used and Cached are free
	Used             int    // blocks with tokens of requests that run
	Cached           int    // blocks with tokens of earlier requests only

	// Since the start.
	Prefilled int // computed tokens of prompts, and of replies that had lost their blocks
	Sampled   int // tokens of replies
	Reused    int // tokens of prompts that were cached
	Preempted int // requests that gave their blocks away and waited again
	Evicted   int // cached blocks that were given away
}

// Observation is the request for one reply.
type Observation interface {
	// Piece is called for each piece of a streamed reply with the number of its tokens.
	Piece(tokens int)
	// End is called once. err is not nil when there is no reply, because of the model or because the client has gone.
	End(reply *art.ChatResponse, err error)
}

// observed reports what the completions of an answer do.
func (h *handler) observed(a *answer) completion {
	ask := a.ask // what it returns takes its place
	if h.Metrics == nil {
		return ask
	}
	return func(ctx context.Context, piece func(art.ChoicePiece) error) (replies []*art.ChatResponse, err error) {
		list := make([]Observation, a.n)
		for i := range list {
			list[i] = h.Metrics.Begin(a.model.Name())
		}
		defer func() { // end the observations that have not ended
			for i, o := range list {
				switch {
				case o == nil:
				case err != nil:
					o.End(nil, err)
				default:
					o.End(replies[i], nil)
				}
			}
		}()
		if piece == nil {
			return ask(ctx, nil)
		}
		return ask(ctx, func(p art.ChoicePiece) error {
			if p.End != nil {
				list[p.Choice].End(p.End, nil)
				list[p.Choice] = nil
			} else {
				list[p.Choice].Piece(len(p.IDs))
			}
			return piece(p)
		})
	}
}

func (h *handler) metrics(w http.ResponseWriter, r *http.Request) error {
	h.Metrics.ServeHTTP(w, r)
	return nil
}
