package hosted

import (
	"net/http"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
)

// Handler serves all registered models under their names; see [server.Handler]. Everyone who can reach it spends the
// money of the key: set the Keys of opts.
func (b *Backend) Handler(opts *art.HandlerOptions) (http.Handler, error) {
	return server.Handler(b.all, &server.Config{Logger: b.opts.Logger}, opts)
}

// Transport answers as m, whatever model a request names.
func (b *Backend) Transport(m *art.Model) http.RoundTripper {
	only := func() []*art.Model { return []*art.Model{m} }
	return server.Transport(server.Routes(only, &server.Config{Logger: b.opts.Logger}), m.Name())
}

func (b *Backend) all() []*art.Model {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.order)
}
