// Package server serves the models of any [art.Backend] over HTTP: OpenAI's chat completions, completions and
// Responses, Anthropic's Messages, vLLM's routes of token ids, the list of models, and probes. docs/server.md lists the
// routes, and the fields that are supported and refused. A route that needs an optional interface of package art which
// the backend lacks answers with status 501.
//
// [Handler] is for a listening server and enforces [art.HandlerOptions]. [Routes] serves the same without access
// control, and [Transport] calls it in process, without a socket. A backend implements driver.HTTPServer with them:
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
// Requests are answered by [art.Model.Complete], [art.Model.Stream] and [art.Model.Sample], so their replies are
// sampled, seeded and recorded like those of calls from Go.
//
// A request names a model as "name", whose newest step answers, or as "name@step", which is that step. Older steps need
// a backend that is an driver.StepPinner, and a checkpoint; any other is an unknown model.
package server
