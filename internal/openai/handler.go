package openai

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/goart-dev/art"
)

// defaultMaxBody is the default of [Config.MaxBody]: 32 MiB.
const defaultMaxBody = 32 << 20

// Config says how models are served.
type Config struct {
	// Tokens returns the bytes of a token of a model. Without it, requests for logprobs are refused.
	Tokens func(m *art.Model, id int32) []byte
	// MaxBody bounds the body of a request in bytes. Default 32 MiB.
	MaxBody int64
	// Logger hears of failures that are not the client's. nil discards.
	Logger *slog.Logger
}

// handler serves one set of models.
type handler struct {
	models Models
	Config
}

// Handler serves POST /v1/chat/completions, GET /v1/models and GET /v1/models/{id} to everybody: it is for a
// [Transport], whose requests come from this process. [Guarded] is for requests from elsewhere. cfg may be nil.
func Handler(models Models, cfg *Config) http.Handler {
	h := &handler{models: models}
	if cfg != nil {
		h.Config = *cfg
	}
	if h.MaxBody == 0 {
		h.MaxBody = defaultMaxBody
	}
	if h.Logger == nil {
		h.Logger = slog.New(slog.DiscardHandler)
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/chat/completions", h.route(http.MethodPost, h.complete))
	mux.Handle("/v1/models", h.route(http.MethodGet, h.list))
	mux.Handle("/v1/models/{id...}", h.route(http.MethodGet, h.show))
	mux.Handle("/", h.route("", notFound))
	return mux
}

// route adapts a function that may fail, for one method; "" is any.
func (h *handler) route(method string, serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := checkMethod(w, r, method)
		if err == nil {
			err = serve(w, r)
		}
		if err != nil {
			fail(h.Logger, w, r, err)
		}
	})
}

// checkMethod refuses another method than the one that is served. HEAD is served as GET.
func checkMethod(w http.ResponseWriter, r *http.Request, method string) error {
	if method == "" || r.Method == method || r.Method == http.MethodHead && method == http.MethodGet {
		return nil
	}
	w.Header().Set("Allow", method)
	return &Error{
		Status:  http.StatusMethodNotAllowed,
		Message: fmt.Sprintf("%s is not served here; use %s", r.Method, method),
		Type:    typeInvalid,
		Code:    "method_not_allowed",
	}
}

// complete serves a chat completion.
func (h *handler) complete(w http.ResponseWriter, r *http.Request) error {
	req, err := h.read(w, r)
	if err != nil {
		return err
	}
	m, err := h.models.find(r.Context(), req.Model)
	if err != nil {
		return err
	}
	reply, err := m.Complete(r.Context(), req.history(), req.options())
	if err != nil {
		return err
	}
	resp, err := newResponse(req, reply, func(id int32) []byte { return h.Tokens(m, id) })
	if err != nil {
		return err
	}
	if req.Stream {
		return sendEvents(w, chunks(resp, req.StreamOptions))
	}
	return sendJSON(w, http.StatusOK, resp)
}

// list serves the models.
func (h *handler) list(w http.ResponseWriter, r *http.Request) error {
	list := ModelList{Object: "list", Data: []ModelInfo{}}
	for _, m := range h.models.visible(r.Context()) {
		list.Data = append(list.Data, newModelInfo(m))
	}
	return sendJSON(w, http.StatusOK, list)
}

// show serves one model.
func (h *handler) show(w http.ResponseWriter, r *http.Request) error {
	m, err := h.models.find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, newModelInfo(m))
}

// notFound answers for every other path.
func notFound(_ http.ResponseWriter, r *http.Request) error {
	return &Error{
		Status:  http.StatusNotFound,
		Message: fmt.Sprintf("%s is not served; there is /v1/chat/completions and /v1/models", r.URL.Path),
		Type:    typeInvalid,
		Code:    "not_found",
	}
}
