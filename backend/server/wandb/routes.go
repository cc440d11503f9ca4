package wandb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/internal/wandbwire"
	"github.com/goart-dev/art/internal/wire"
)

// Prefix begins the paths of the training routes. Those of inference are below /v1/ too.
const Prefix = "/v1/preview/"

// Handler serves training and inference to the clients that opts admit. Keys of opts are those of the first tenant.
func (s *Server) Handler(opts *art.HandlerOptions) (http.Handler, error) {
	var o art.HandlerOptions
	if opts != nil {
		o = *opts
	}
	s.admit(s.opts.Tenants[0].Name, o.Keys)
	for i := range s.opts.Tenants {
		o.Keys = append(o.Keys, s.opts.Tenants[i].Keys...)
	}
	o.MaxBody = s.opts.MaxBody
	return server.Guard(s.routes(), &o, &server.GuardConfig{Logger: s.log})
}

// route serves one route for a tenant. It returns what is sent as JSON.
type route = func(r *http.Request, tenant string) (any, error)

// table are the training routes, by their patterns below the prefix.
func (s *Server) table() map[string]route {
	return map[string]route{
		"POST models":                        s.createModel,
		"DELETE models/{id}":                 s.deleteModel,
		"POST models/{id}/log":               s.logGroups,
		"GET models/{id}/checkpoints":        s.listCheckpoints,
		"DELETE models/{id}/checkpoints":     s.deleteCheckpoints,
		"POST training-jobs":                 s.createJob,
		"POST sft-training-jobs":             s.createSFTJob,
		"GET training-jobs/{id}/events":      s.listEvents,
		"PUT artifacts/{project}/{artifact}": s.putArtifact,
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, f := range s.table() {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+Prefix+path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, f) })
	}
	none := func() []*art.Model { return nil }
	mux.Handle("/", server.Routes(none, &server.Config{
		Find: s.find, Samples: true, MaxBody: s.opts.MaxBody, Logger: s.log, Ready: ready,
	}))
	return mux
}

// serve serves a training route.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, f route) {
	r.Body = http.MaxBytesReader(w, r.Body, s.opts.MaxBody)
	tenant := s.tenantOf(r)
	var out any
	err := error(failf(http.StatusUnauthorized, "the API key is missing or wrong; send one of the server's keys"))
	if tenant != "" {
		out, err = f(r, tenant)
	}
	status := http.StatusOK
	if err != nil {
		e := wire.AsError(err)
		if status = e.Status; status == http.StatusInternalServerError {
			s.log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
		}
		out = e
	}
	body, err := json.Marshal(out)
	if err != nil {
		s.log.ErrorContext(r.Context(), "answer could not be encoded", "path", r.URL.Path, "error", err)
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error says that the client has gone
}

// failf is an error with a status.
func failf(status int, format string, args ...any) *wire.Error {
	kind := wire.TypeInvalid
	if status >= http.StatusInternalServerError {
		kind = wire.TypeInternal
	}
	return &wire.Error{Status: status, Message: fmt.Sprintf(format, args...), Type: kind}
}

// readAllBody reads a body that is not too large.
func readAllBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, failf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", large.Limit)
	}
	if err != nil {
		return nil, failf(http.StatusBadRequest, "the body could not be read: %v", err)
	}
	return body, nil
}

// decode reads a JSON body.
func decode(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return failf(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	return nil
}

// readJSON reads the JSON body of a request.
func readJSON(r *http.Request, v any) error {
	body, err := readAllBody(r)
	if err != nil {
		return err
	}
	return decode(body, v)
}

// page returns the part of a list that a request asks for: limit elements behind that with the id after.
func page[T any](r *http.Request, list []T, id func(T) string) (wandbwire.Page[T], error) {
	query := r.URL.Query()
	out := wandbwire.Page[T]{Data: []T{}}
	limit := 100
	if text := query.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return out, failf(http.StatusBadRequest, "limit is %.40q, want a number from 1 on", text)
		}
		limit = min(n, limit)
	}
	if after := query.Get("after"); after != "" {
		at := -1
		for i := range list {
			if id(list[i]) == after {
				at = i
			}
		}
		if at < 0 {
			return out, failf(http.StatusBadRequest, "after is %.80q, which is not in the list", after)
		}
		list = list[at+1:]
	}
	out.HasMore = len(list) > limit
	out.Data = append(out.Data, list[:min(limit, len(list))]...)
	return out, nil
}
