package tinker

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/backend/server/access"
	"github.com/goart-dev/art/backend/server/internal/tenancy"
	"github.com/goart-dev/art/internal/tinkerwire"
)

// Prefix begins all paths of the API.
const Prefix = "/api/v1/"

// Handler serves the API to the clients that opts admit. Keys of opts are those of the first tenant.
func (s *Server) Handler(opts *art.HandlerOptions) (http.Handler, error) {
	var o art.HandlerOptions
	if opts != nil {
		o = *opts
	}
	s.users.Admit(o.Keys)
	o.Keys = slices.Concat(o.Keys, s.users.Secrets())
	o.MaxBody = s.opts.MaxBody
	return server.Guard(s.routes(), &o, &server.GuardConfig{
		Keyless: isDownload, Client: s.users.Tenant, Clients: len(s.tenants), Logger: s.log,
	})
}

// handler serves one route for a tenant.
type handler = func(w http.ResponseWriter, r *http.Request, t *user) error

// route is a handler, and the scopes of which a key must have one. Without any it is for every key: what it shows is
// what the key has done, and the results of what it may do.
type route struct {
	serve handler
	needs []access.Scope
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, route := range s.table() {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" "+Prefix+path, func(w http.ResponseWriter, r *http.Request) {
			err := fail(http.StatusUnauthorized, "the API key is missing or wrong; send one of the server's keys as X-API-Key")
			if key := s.users.Caller(r); key != nil {
				if err = key.Needs(pattern, route.needs...); err == nil {
					err = route.serve(w, r, &user{s.tenantNamed(key.Tenant), key})
				}
			}
			if err != nil {
				s.refuse(w, r, err)
			}
		})
	}
	mux.HandleFunc("GET "+downloads+"{token}/{file}", s.download)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, failf(http.StatusNotFound, "%s %.200s is not served", r.Method, r.URL.Path))
	})
	return mux
}

// table are the routes by their patterns, "METHOD PATH", where the path is below the prefix.
func (s *Server) table() map[string]route {
	on := func(f handler, needs ...access.Scope) route { return route{f, needs} }
	const checkpoint = " training_runs/{id}/checkpoints/{kind}/{name}"
	all := map[string]route{
		"POST client/config":                          on(s.withBody(s.config)),
		"POST client/dynamic_config":                  on(always(dynamicConfig)),
		"POST create_session":                         on(s.withBody(s.createSession)),
		"POST session_heartbeat":                      on(s.withBody(s.heartbeat)),
		"POST sessions/{id}/finish":                   on(s.finish),
		"POST telemetry":                              on(always(tinkerwire.Result{Status: "accepted"})),
		"GET get_server_capabilities":                 on(s.capabilities),
		"GET healthz":                                 on(always(tinkerwire.Result{Status: "ok"})),
		"POST create_sampling_session":                on(s.withBody(s.createSampler), access.Sample),
		"GET samplers/{id}":                           on(s.showSampler, access.Sample),
		"POST asample":                                on(s.asample, access.Sample),
		"POST retrieve_future":                        on(s.withBody(s.retrieve)),
		"POST weights_info":                           on(s.withBody(s.weightsInfo), access.Train, access.List),
		"GET training_runs":                           on(s.listRuns, access.List),
		"GET training_runs/{id}":                      on(s.showRun, access.List),
		"GET checkpoints":                             on(s.listAllCheckpoints, access.List),
		"GET sessions":                                on(s.listSessions, access.List),
		"GET sessions/{id}":                           on(s.showSession, access.List),
		"GET usage":                                   on(s.showUsage),
		"GET training_runs/{id}/checkpoints":          on(s.listCheckpoints, access.List),
		"DELETE" + checkpoint:                         on(s.deleteCheckpoint, access.Delete),
		"PUT" + checkpoint + "/ttl":                   on(s.withBody(s.setTTL), access.Delete),
		"GET" + checkpoint + "/archive":               on(s.archive, access.Download),
		"GET" + checkpoint + "/external_weights_urls": on(s.externalURLs, access.Download),
		"POST get_info":                               on(s.withBody(s.info), access.Train),
		"POST unload_model":                           on(s.withBody(s.unload), access.Train),
	}
	for _, op := range []string{opCreate, opForward, opBackward, opOptim, opSave, opSampler, opExternal, opLoad} {
		operate := func(w http.ResponseWriter, r *http.Request, t *user) error { return s.operate(w, r, t, op) }
		all["POST "+op] = on(operate, access.Train)
	}
	return all
}

func statusOf(err error) int {
	var f *failure
	var denied *tenancy.DeniedError
	switch {
	case errors.As(err, &f):
		return f.status
	case errors.As(err, &denied):
		return http.StatusForbidden
	case errors.Is(err, art.ErrInvalid):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	if status == http.StatusInternalServerError {
		s.log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "error", err)
	}
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	body, _ := json.Marshal(map[string]string{"detail": detail(err)}) // texts can always be encoded
	send(w, status, tinkerwire.JSONType, body)
}

// retryAfter is when a client that was refused may try again, in seconds.
const retryAfter = "2"

// maxSmall bounds the bodies of requests without data, in bytes.
const maxSmall = 1 << 20

func (s *Server) readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "" {
		return nil, fail(http.StatusUnsupportedMediaType, "compressed bodies are not served; client/config says so")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, min(limit, s.opts.MaxBody)))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return nil, failf(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes; send less in one request",
			large.Limit)
	}
	if err != nil {
		return nil, fail(http.StatusBadRequest, "the body could not be read: "+err.Error())
	}
	return body, nil
}

// withBody is a handler of requests with a small JSON body.
func (s *Server) withBody(
	f func(w http.ResponseWriter, r *http.Request, t *user, req *tinkerwire.Request) error,
) handler {
	return func(w http.ResponseWriter, r *http.Request, t *user) error {
		body, err := s.readBody(w, r, maxSmall)
		if err != nil {
			return err
		}
		if err := checkCounts(smallCounts, body); err != nil {
			return err
		}
		var req tinkerwire.Request
		if err := json.Unmarshal(body, &req); err != nil {
			return fail(http.StatusBadRequest, "the body cannot be read: "+err.Error())
		}
		return f(w, r, t, &req)
	}
}

// config serves POST client/config: one process samples, so that fewer requests at once are enough.
func (s *Server) config(w http.ResponseWriter, _ *http.Request, t *user, req *tinkerwire.Request) error {
	out := map[string]any{
		"pjwt_auth_enabled": false, "proto_write_fwdbwd": true, "proto_compress_fwdbwd": false,
		"fwdbwd_max_chunk_len": min(t.limits.Datums, 1024), "sample_max_concurrent_requests": 400,
	}
	for _, extension := range []string{tinkerwire.PolicyWeights, tinkerwire.NoTarget} {
		if slices.Contains(req.Extensions, extension) {
			out[extension] = true
		}
	}
	return sendJSON(w, http.StatusOK, out)
}

// capabilities lists the base models.
func (s *Server) capabilities(w http.ResponseWriter, _ *http.Request, _ *user) error {
	var out tinkerwire.Capabilities
	for _, b := range s.opts.Bases {
		out.Models = append(out.Models, tinkerwire.SupportedModel{
			Name: b.Name, MaxContext: b.MaxContext, Trainable: new(true), Sampleable: new(true),
		})
	}
	return sendJSON(w, http.StatusOK, out)
}

var dynamicConfig = map[string]any{"refresh_interval_sec": 300, "sample_cancel_enabled": false}

// always is a handler that has one answer, whatever is sent: what clients tell of themselves is forgotten.
func always(answer any) handler {
	return func(w http.ResponseWriter, _ *http.Request, _ *user) error { return sendJSON(w, http.StatusOK, answer) }
}
