// Package server serves the models of any [art.Backend] over HTTP with OpenAI's API: chat completions and the list of
// models. The wire format and the fields that are supported are described in package internal/wire.
//
// [Handler] is for a listening server and enforces [art.HandlerOptions]. [Routes] serves the same without access
// control, and [Transport] calls it in process, without a socket. A backend implements [art.HTTPServer] with them:
//
//	func (b *Backend) Handler(opts *art.HandlerOptions) (http.Handler, error) {
//		return server.Handler(b.models, nil, opts)
//	}
//
//	func (b *Backend) Transport(m *art.Model) http.RoundTripper {
//		only := func() []*art.Model { return []*art.Model{m} }
//		return server.Transport(server.Routes(only, nil), m.Name())
//	}
//
// Requests are answered by [art.Model.Complete], so their replies are sampled, seeded and recorded like those of calls
// from Go.
//
// A request names a model as "name" or "name@step". A step other than the current one is an unknown model.
package server
