package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
)

// metricsPath is where [Config.Metrics] are served.
const metricsPath = "/metrics"

// Gate refuses requests while it is closed: while models are loaded, and before the process ends, so that no reply is
// cut off. Its zero value is open. It is safe for concurrent use.
//
//	var gate server.Gate
//	s := &http.Server{Handler: gate.Handler(handler)}
//	...
//	gate.Close("the server is shutting down") // GET /readyz fails from now on
//	err := errors.Join(gate.Wait(ctx), s.Shutdown(ctx))
type Gate struct {
	mu      sync.Mutex
	closed  bool
	why     string
	running int
	idle    chan struct{} // closed when running is 0 again
}

// Open admits requests.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}

// Close refuses new requests with status 503 and the reason. Those that have been admitted go on.
func (g *Gate) Close(why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.why = true, why
}

// Running returns the number of admitted requests that have not been answered.
func (g *Gate) Running() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

// Wait returns when all admitted requests have been answered, or with an error that counts the others when ctx ends. An
// open gate may admit new ones meanwhile.
func (g *Gate) Wait(ctx context.Context) error {
	g.mu.Lock()
	running, idle := g.running, g.idle
	g.mu.Unlock()
	if running == 0 {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d requests have not been answered yet: %w", g.Running(), context.Cause(ctx))
	}
}

// Handler admits requests to the handler of this package. GET /health and GET /metrics are always admitted, and not
// counted; GET /readyz fails while the gate is closed.
func (g *Gate) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == healthPath || r.URL.Path == metricsPath {
			next.ServeHTTP(w, r)
			return
		}
		if err := g.enter(); err != nil {
			w.Header().Set("Connection", "close") // the next request may go to another server
			fail(slog.New(slog.DiscardHandler), w, r, err)
			return
		}
		defer func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.running--; g.running == 0 {
				close(g.idle)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (g *Gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return notReady(g.why)
	}
	if g.running == 0 {
		g.idle = make(chan struct{})
	}
	g.running++
	return nil
}

// notReady is the error of requests that cannot be answered now.
func notReady(why string) error {
	return unavailable(http.StatusServiceUnavailable, "not_ready", 1, "%s", why)
}
