package wandb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/jsoncount"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
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
	s.users.Admit(o.Keys)
	o.Keys = slices.Concat(o.Keys, s.users.Secrets())
	o.MaxBody = s.opts.MaxBody
	return server.Guard(s.routes(), &o, &server.GuardConfig{
		Client: s.users.Tenant, Clients: len(s.opts.Tenants), Logger: s.log,
	})
}

// handler serves one route. It returns what is sent as JSON.
type handler = func(r *http.Request, by *tenancy.Caller) (any, error)

// route is a handler, and the scopes of which a key must have one. Without any it is for every key.
type route struct {
	serve handler
	needs []access.Scope
}

// table are the training routes, by their patterns below the prefix. The scopes of the routes of inference are in
// [Server.find].
func (s *Server) table() map[string]route {
	on := func(f handler, needs ...access.Scope) route { return route{f, needs} }
	return map[string]route{
		"POST models":                           on(s.createModel, access.Train),
		"DELETE models/{id}":                    on(s.deleteModel, access.Delete),
		"POST models/{id}/log":                  on(s.logGroups, access.Train),
		"GET models/{id}/checkpoints":           on(s.listCheckpoints, access.Train, access.List),
		"DELETE models/{id}/checkpoints":        on(s.deleteCheckpoints, access.Delete),
		"POST training-jobs":                    on(s.createJob, access.Train),
		"POST sft-training-jobs":                on(s.createSFTJob, access.Train),
		"GET training-jobs/{id}/events":         on(s.listEvents, access.Train, access.List),
		"PUT artifacts/{project}/{artifact}":    on(s.putArtifact, access.Train),
		"DELETE artifacts/{project}/{artifact}": on(s.deleteArtifact, access.Delete),
		"GET usage":                             on(s.showUsage),
	}
}

// showUsage serves GET usage: of the tenant with all keys, or of a key with limits.
func (s *Server) showUsage(_ *http.Request, by *tenancy.Caller) (any, error) {
	report := s.users.Usage()[by.Tenant]
	if by.Limited() {
		return report.Keys[by.Key()], nil
	}
	return report, nil
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, route := range s.table() {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+Prefix+path, func(w http.ResponseWriter, r *http.Request) {
			s.serve(w, r, pattern, route)
		})
	}
	none := func() []*art.Model { return nil }
	inference := server.Routes(none, &server.Config{
		Find: s.find, Used: s.used, Samples: true, MaxBody: s.opts.MaxBody, Logger: s.log, Ready: ready,
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		inference.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, s.users.Caller(r))))
	})
	return mux
}

// callerKey is the context key of the caller of a request for inference.
type callerKey struct{}

// used adds the tokens of a request to what its key has used.
func (s *Server) used(ctx context.Context, u art.Usage) {
	if by, _ := ctx.Value(callerKey{}).(*tenancy.Caller); by != nil {
		s.users.Charge(by.Tenant, by.Key(), access.Usage{
			PromptTokens: int64(u.PromptTokens), SampledTokens: int64(u.CompletionTokens),
		})
	}
}

// unknownKey is the error of a key that is nobody's.
func unknownKey() error {
	return failf(http.StatusUnauthorized, "the API key is missing or wrong; send one of the server's keys")
}

// forbidden gives an error of a key its status.
func forbidden(err error) error {
	var denied *tenancy.DeniedError
	if errors.As(err, &denied) {
		return failf(http.StatusForbidden, "%v", err)
	}
	return err
}

// public is an error without what only the server's operator may read. Errors of this package have nothing of that.
func public(err error) error {
	var own *wire.Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	e := wire.AsError(err)
	e.Message = tenancy.Public(err)
	return e
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, pattern string, to route) {
	r.Body = http.MaxBytesReader(w, r.Body, s.opts.MaxBody)
	var out any
	err := unknownKey()
	if by := s.users.Caller(r); by != nil {
		if err = by.Needs(pattern, to.needs...); err == nil {
			out, err = to.serve(r, by)
		}
	}
	status := http.StatusOK
	if err != nil {
		e := wire.AsError(public(forbidden(err)))
		if status = e.Status; status == http.StatusInternalServerError {
			s.log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
		}
		if e.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
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
		return nil, failf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes; send less in one request",
			large.Limit)
	}
	if err != nil {
		return nil, failf(http.StatusBadRequest, "the body could not be read: %v", err)
	}
	return body, nil
}

// decode reads a JSON body whose counts were checked.
func decode(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return failf(http.StatusBadRequest, "the body cannot be read: %v", err)
	}
	return nil
}

func readJSON(r *http.Request, v any, counts *jsoncount.Limits) error {
	body, err := readAllBody(r)
	if err != nil {
		return err
	}
	if err := checkCounts(counts, body); err != nil {
		return err
	}
	return decode(body, v)
}

// readSmall is readJSON for a request without data.
func readSmall(r *http.Request, v any) error {
	r.Body = http.MaxBytesReader(nil, r.Body, maxSmall)
	return readJSON(r, v, &jsoncount.Limits{Other: maxValues})
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
		at := slices.IndexFunc(list, func(x T) bool { return id(x) == after })
		if at < 0 {
			return out, failf(http.StatusBadRequest, "after is %.80q, which is not in the list", after)
		}
		list = list[at+1:]
	}
	out.HasMore = len(list) > limit
	out.Data = append(out.Data, list[:min(limit, len(list))]...)
	return out, nil
}
