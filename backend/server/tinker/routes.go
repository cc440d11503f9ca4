package tinker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/backend/server/access"
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
	return server.Guard(s, &o, &server.GuardConfig{
		Keyless: isDownload, Client: s.users.Tenant, Clients: len(s.tenants), Logger: s.log,
	})
}

// ServeHTTP serves the API without checking where requests come from; use [Server.Handler] for requests from elsewhere.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.routes().ServeHTTP(w, r)
}

// route serves one route for a tenant.
type route = func(w http.ResponseWriter, r *http.Request, t *user) error

// routes returns the routes.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, f := range s.table() {
		s.handle(mux, pattern, f)
	}
	mux.HandleFunc("GET "+downloads+"{token}/{file}", s.download)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, failf(http.StatusNotFound, "%s %.200s is not served", r.Method, r.URL.Path))
	})
	return mux
}

// table are the routes by their patterns.
func (s *Server) table() map[string]route {
	all := map[string]route{
		"POST client/config":                 s.config,
		"POST client/dynamic_config":         s.dynamicConfig,
		"POST create_session":                s.createSession,
		"POST session_heartbeat":             s.heartbeat,
		"POST sessions/{id}/finish":          s.finish,
		"POST telemetry":                     telemetry,
		"GET get_server_capabilities":        s.capabilities,
		"GET healthz":                        healthz,
		"POST create_sampling_session":       s.createSampler,
		"GET samplers/{id}":                  s.showSampler,
		"POST asample":                       s.asample,
		"POST retrieve_future":               s.retrieve,
		"POST weights_info":                  s.weightsInfo,
		"GET training_runs":                  s.listRuns,
		"GET training_runs/{id}":             s.showRun,
		"GET checkpoints":                    s.listAllCheckpoints,
		"GET sessions":                       s.listSessions,
		"GET sessions/{id}":                  s.showSession,
		"GET usage":                          s.showUsage,
		"GET training_runs/{id}/checkpoints": s.listCheckpoints,
		"DELETE training_runs/{id}/checkpoints/{kind}/{name}":                    s.deleteCheckpoint,
		"PUT training_runs/{id}/checkpoints/{kind}/{name}/ttl":                   s.setTTL,
		"GET training_runs/{id}/checkpoints/{kind}/{name}/archive":               s.archive,
		"GET training_runs/{id}/checkpoints/{kind}/{name}/external_weights_urls": s.externalURLs,
	}
	maps.Copy(all, s.operations())
	return all
}

// needs are the scopes of which a key must have one. Routes that are not listed are for every key; what they show is
// what the key has done, and the results of what it may do.
var needs = map[string][]access.Scope{
	"POST create_sampling_session":       {access.Sample},
	"GET samplers/{id}":                  {access.Sample},
	"POST asample":                       {access.Sample},
	"POST weights_info":                  {access.Train, access.List},
	"GET training_runs":                  {access.List},
	"GET training_runs/{id}":             {access.List},
	"GET checkpoints":                    {access.List},
	"GET sessions":                       {access.List},
	"GET sessions/{id}":                  {access.List},
	"GET training_runs/{id}/checkpoints": {access.List},
	"DELETE training_runs/{id}/checkpoints/{kind}/{name}":                    {access.Delete},
	"PUT training_runs/{id}/checkpoints/{kind}/{name}/ttl":                   {access.Delete},
	"GET training_runs/{id}/checkpoints/{kind}/{name}/archive":               {access.Download},
	"GET training_runs/{id}/checkpoints/{kind}/{name}/external_weights_urls": {access.Download},
	"POST get_info":      {access.Train},
	"POST unload_model":  {access.Train},
	"POST " + opCreate:   {access.Train},
	"POST " + opForward:  {access.Train},
	"POST " + opBackward: {access.Train},
	"POST " + opOptim:    {access.Train},
	"POST " + opSave:     {access.Train},
	"POST " + opSampler:  {access.Train},
	"POST " + opExternal: {access.Train},
	"POST " + opLoad:     {access.Train},
}

// handle adds a route: "METHOD PATH", where the path is below the prefix.
func (s *Server) handle(mux *http.ServeMux, pattern string, f route) {
	var method, path string
	_, _ = fmt.Sscan(pattern, &method, &path) // patterns are constants
	mux.HandleFunc(method+" "+Prefix+path, func(w http.ResponseWriter, r *http.Request) {
		t := s.callerOf(r)
		err := fail(http.StatusUnauthorized, "the API key is missing or wrong; send one of the server's keys as X-API-Key")
		if t != nil {
			if err = t.key.Needs(pattern, needs[pattern]...); err == nil {
				err = f(w, r, t)
			}
		}
		if err != nil {
			s.refuse(w, r, err)
		}
	})
}

// statusOf is the status of an error.
func statusOf(err error) int {
	var f *failure
	var denied *access.DeniedError
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

// refuse sends an error.
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

// readBody reads a body of at most limit bytes.
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

// readJSON reads a JSON body.
func (s *Server) readJSON(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := s.readBody(w, r, maxSmall)
	if err != nil {
		return err
	}
	if err := checkCounts(smallCounts, body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fail(http.StatusBadRequest, "the body cannot be read: "+err.Error())
	}
	return nil
}

// mediaType is the type of a body: protobuf, or JSON.
func mediaType(r *http.Request) string {
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == tinkerwire.ProtoType {
		return media
	}
	return tinkerwire.JSONType
}

// config serves POST client/config: one process samples, so that fewer requests at once are enough.
func (s *Server) config(w http.ResponseWriter, r *http.Request, t *user) error {
	var req tinkerwire.Request
	if err := s.readJSON(w, r, &req); err != nil {
		return err
	}
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

func (s *Server) dynamicConfig(w http.ResponseWriter, _ *http.Request, _ *user) error {
	return sendJSON(w, http.StatusOK, map[string]any{"refresh_interval_sec": 300, "sample_cancel_enabled": false})
}

// telemetry accepts what clients tell of themselves, and forgets it.
func telemetry(w http.ResponseWriter, _ *http.Request, _ *user) error {
	return sendJSON(w, http.StatusOK, tinkerwire.Result{Status: "accepted"})
}

func healthz(w http.ResponseWriter, _ *http.Request, _ *user) error {
	return sendJSON(w, http.StatusOK, tinkerwire.Result{Status: "ok"})
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
