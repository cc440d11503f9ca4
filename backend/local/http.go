package local

import (
	"net/http"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/openai"
)

// Handler serves all registered models under their names.
func (b *Backend) Handler() http.Handler {
	return openai.Handler(b.registered, &openai.Config{Tokens: b.tokenBytes, Logger: b.opts.Logger})
}

// Transport answers as m, whatever model a request names.
func (b *Backend) Transport(m *art.Model) http.RoundTripper {
	only := func() []*art.Model { return []*art.Model{m} }
	return openai.Transport(openai.Handler(only, &openai.Config{Tokens: b.tokenBytes, Logger: b.opts.Logger}), m.Name())
}

func (b *Backend) registered() []*art.Model {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.order)
}

func (b *Backend) tokenBytes(m *art.Model, id int32) []byte {
	e, err := b.entry("tokens", m)
	if err != nil {
		return nil
	}
	return e.base.tokenizer.TokenBytes(id)
}
