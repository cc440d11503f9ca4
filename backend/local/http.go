package local

import (
	"net/http"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
)

// Handler serves all registered models under their names. opts may be nil, which serves programs that reach it as
// localhost, or at the address that it listens on, and refuses requests from web pages. It requires no key unless
// opts.Keys has one: the address that the server listens on then decides who can reach it.
//
//	handler, err := backend.Handler(&art.HandlerOptions{Keys: []string{key}, Hosts: []string{"gpu-box"}})
//	server := &http.Server{Addr: ":8080", Handler: handler, ReadHeaderTimeout: 10 * time.Second}
//
// The request must be of type application/json, and is of [art.HandlerOptions].MaxBody bytes at most. A refused request
// gets an error in OpenAI's format that says what to do: status 401 for a key, 403 for a host or an origin, 408 for a
// body that does not arrive, 413 for one that is too large, 415 for another type, 503 for too many at once.
func (b *Backend) Handler(opts *art.HandlerOptions) (http.Handler, error) {
	return server.Handler(b.registered, b.serverConfig(), opts)
}

// Transport answers as m, whatever model a request names.
func (b *Backend) Transport(m *art.Model) http.RoundTripper {
	only := func() []*art.Model { return []*art.Model{m} }
	return server.Transport(server.Routes(only, b.serverConfig()), m.Name())
}

// serverConfig is the configuration of both.
func (b *Backend) serverConfig() *server.Config {
	return &server.Config{
		Rollouts: b.opts.Rollouts, Capture: b.opts.Capture, Metrics: b.opts.Metrics, Logger: b.opts.Logger,
	}
}

func (b *Backend) registered() []*art.Model {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.order)
}
