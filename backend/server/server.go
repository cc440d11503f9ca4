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

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// Defaults of [Config].
const (
	defaultMaxBody    = 32 << 20
	defaultMaxChoices = 128
)

// Config configures the routes.
type Config struct {
	// Tokens returns the bytes of a token of a model. Default: those of its backend, if that is an driver.Tokenizer;
	// else requests for logprobs are refused.
	Tokens func(m *art.Model, id int32) []byte
	// MaxBody limits the body of a request, in bytes. Default 32 MiB. [Handler] takes [art.HandlerOptions].MaxBody.
	MaxBody int64
	// MaxChoices limits the replies to one request, of all its prompts. Default 128. [Handler] takes
	// [art.HandlerOptions].MaxChoices.
	MaxChoices int
	// MaxTokens limits the tokens of a reply. Default: what the context has left. [Handler] takes
	// [art.HandlerOptions].MaxTokens.
	MaxTokens int
	// Ready says why requests cannot be answered yet, or any more, for GET /readyz. nil, the default, is that they can as
	// soon as a model is registered.
	Ready func(ctx context.Context) error
	// Find returns the model that a request names, or a step of it, in place of those that are listed: for names of
	// another form, and for models of the request's key. A nil model without an error is looked for in the list.
	Find func(r *http.Request, name string) (*art.Model, *art.Pin, error)
	// Used is told how many tokens a request took that was answered in full, with its context: those of each prompt once,
	// and those of all replies. nil: nobody is.
	Used func(ctx context.Context, u art.Usage)
	// Samples adds to each choice of a chat completion, unless it is streamed, the field "art_sample": the exact tokens
	// with all that training needs, as [art.History] stores them. Clients that hand choices back to a trainer keep it.
	Samples bool
	// Rollouts records what clients do, in rollouts that they open. If it is nil, there are none.
	Rollouts *Rollouts
	// Capture writes down completions that belong to no rollout, with consent. If it is nil, none.
	Capture *Capture
	// Metrics is served at GET /metrics. If it is nil, that path is not served.
	Metrics Metrics
	// Logger receives internal errors. nil discards them.
	Logger *slog.Logger
}

// handler serves a set of models.
type handler struct {
	models Models
	Config
}

// Routes serves the routes of the package without access control: it is for [Transport], whose requests come from this
// process. Use [Handler] for requests from elsewhere. cfg may be nil.
func Routes(models Models, cfg *Config) http.Handler {
	h := &handler{models: models}
	if cfg != nil {
		h.Config = *cfg
	}
	h.MaxBody, h.MaxChoices = cmp.Or(h.MaxBody, defaultMaxBody), cmp.Or(h.MaxChoices, defaultMaxChoices)
	h.Logger = cmp.Or(h.Logger, slog.New(slog.DiscardHandler))
	mux := http.NewServeMux()
	mux.Handle("/v1/chat/completions", h.route(http.MethodPost, h.complete))
	mux.Handle("/v1/responses", h.route(http.MethodPost, h.responses))
	mux.Handle(messagesPath, h.route(http.MethodPost, h.messages))
	mux.Handle(messagesPath+"/count_tokens", h.route(http.MethodPost, h.countTokens))
	mux.Handle("/v1/completions", h.route(http.MethodPost, h.completions))
	mux.Handle("/inference/v1/generate", h.route(http.MethodPost, h.generate))
	mux.Handle("/tokenize", h.route(http.MethodPost, h.tokenize))
	mux.Handle("/detokenize", h.route(http.MethodPost, h.detokenize))
	mux.Handle(healthPath, h.route(http.MethodGet, h.health))
	mux.Handle(readyPath, h.route(http.MethodGet, h.ready))
	if h.Metrics != nil {
		mux.Handle(metricsPath, h.route(http.MethodGet, h.metrics))
	}
	mux.Handle("/v1/models", h.route(http.MethodGet, h.list))
	mux.Handle("/v1/models/{id...}", h.route(http.MethodGet, h.show))
	h.routeRollouts(mux)
	mux.Handle("/", h.route("", notFound))
	return h.recorded(mux)
}

// route serves one method with a function that may fail; "" is any method. HEAD is served like GET.
func (h *handler) route(method string, serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if method == "" || r.Method == method || r.Method == http.MethodHead && method == http.MethodGet {
			err = serve(w, r)
		} else {
			w.Header().Set("Allow", method)
			err = refused(http.StatusMethodNotAllowed, "method_not_allowed",
				"%s is not served here; use %s", r.Method, method)
		}
		if err != nil {
			fail(h.Logger, w, r, err)
		}
	})
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) error {
	return sendJSON(w, http.StatusOK, wire.NewModelList(h.models.visible(r.Context())))
}

func (h *handler) show(w http.ResponseWriter, r *http.Request) error {
	m, err := h.models.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, wire.NewModelInfo(m))
}

// served lists the routes.
const served = "/v1/chat/completions, /v1/completions, /v1/responses, /v1/messages, /v1/messages/count_tokens, " +
	"/v1/models, /tokenize, /detokenize, /inference/v1/generate, " + healthPath + " and " + readyPath

func notFound(_ http.ResponseWriter, r *http.Request) error {
	return refused(http.StatusNotFound, "not_found", "%s is not served; there are %s", r.URL.Path, served)
}

// The paths that need no key: those of probes.
const (
	healthPath = "/health"
	readyPath  = "/readyz"
)

// isProbe reports whether a request asks only whether the server is there.
func isProbe(r *http.Request) bool { return r.URL.Path == healthPath || r.URL.Path == readyPath }

// health serves an empty response for as long as the process answers.
func (h *handler) health(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusOK)
	return nil
}

// ready serves an empty response when requests can be answered, else status 503 with the reason.
func (h *handler) ready(w http.ResponseWriter, r *http.Request) error {
	if len(h.models.visible(r.Context())) == 0 {
		return notReady("no model is registered")
	}
	if h.Ready != nil {
		if err := h.Ready(r.Context()); err != nil {
			return notReady(err.Error())
		}
	}
	w.WriteHeader(http.StatusOK)
	return nil
}
