package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/wire"
)

// rolloutBase is the beginning of the paths of a rollout; its id follows.
const rolloutBase = "/r/"

// rolloutHeader names the rollout of a request whose path does not.
const rolloutHeader = "X-Rollout-ID"

// Paths that a rollout serves: completions, those of conversations first, and paths that sample nothing, so that
// nothing goes unrecorded.
var (
	chatPaths     = []string{"/v1/chat/completions", "/v1/responses", "/v1/messages"}
	recordedPaths = append(slices.Clone(chatPaths), "/v1/completions", "/inference/v1/generate")
	plainPaths    = []string{"/v1/models", "/v1/messages/count_tokens", "/tokenize", "/detokenize", "/health"}
)

// rolloutModelKey is the context key of the name of the model that answers a rollout, whatever model the client names.
type rolloutModelKey struct{}

// routeRollouts adds the routes that open, read and close rollouts.
func (h *handler) routeRollouts(mux *http.ServeMux) {
	if h.Rollouts == nil {
		return
	}
	mux.Handle("/v1/rollouts", h.route(http.MethodPost, h.openRollout))
	mux.Handle("/v1/rollouts/{id}", h.route(http.MethodGet, h.showRollout))
	mux.Handle("/v1/rollouts/{id}/close", h.route(http.MethodPost, h.closeRollout))
	mux.Handle("/v1/rollouts/groups/{group}/close", h.route(http.MethodPost, h.closeGroup))
}

// openRollout serves POST /v1/rollouts.
func (h *handler) openRollout(w http.ResponseWriter, r *http.Request) error {
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	req, err := decodeOpen(body)
	if err != nil {
		return err
	}
	m, pin, err := h.models.resolve(r.Context(), req.Model)
	if err != nil {
		return err
	}
	if req.pin = pin; req.Pin && pin == nil {
		if req.pin, err = m.Pin(); err != nil {
			return err
		}
	}
	info, err := h.Rollouts.open(ownerOf(r.Context()), m, req)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusCreated, info)
}

// showRollout serves GET /v1/rollouts/{id}.
func (h *handler) showRollout(w http.ResponseWriter, r *http.Request) error {
	t, err := h.Rollouts.show(ownerOf(r.Context()), r.PathValue("id"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, t)
}

// closeRollout serves POST /v1/rollouts/{id}/close.
func (h *handler) closeRollout(w http.ResponseWriter, r *http.Request) error {
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	req, err := decodeClose(body)
	if err != nil {
		return err
	}
	info, err := h.Rollouts.close(ownerOf(r.Context()), r.PathValue("id"), req)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, info)
}

// closeGroup serves POST /v1/rollouts/groups/{group}/close. The body has no fields.
func (h *handler) closeGroup(w http.ResponseWriter, r *http.Request) error {
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	if err := decodeStrict(body, &struct{}{}); err != nil {
		return err
	}
	info, err := h.Rollouts.closeGroup(ownerOf(r.Context()), r.PathValue("group"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, info)
}

// recorded records the requests that name a rollout, and captures others where the configuration says so.
func (h *handler) recorded(routes http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, inner, err := rolloutOf(r)
		switch {
		case err != nil:
		case id == "", strings.HasPrefix(r.URL.Path, "/v1/rollouts"): // a client may send the header always
			h.captured(w, r, routes)
		default:
			err = h.recordedTurn(w, inner, id, routes)
		}
		if err != nil {
			fail(h.Logger, w, r, err)
		}
	})
}

// rolloutOf returns the id of the rollout that a request names, "" for none, and the request without it in its path.
func rolloutOf(r *http.Request) (id string, inner *http.Request, err error) {
	named := r.Header.Get(rolloutHeader)
	rest, ok := strings.CutPrefix(r.URL.Path, rolloutBase)
	if !ok {
		return named, r, nil
	}
	id, rest, _ = strings.Cut(rest, "/")
	if named != "" && named != id {
		return "", nil, &wire.Error{
			Status:  http.StatusBadRequest,
			Message: "the path and the header " + rolloutHeader + " name different rollouts; leave the header out",
			Type:    wire.TypeInvalid,
		}
	}
	copied, u := *r, *r.URL
	u.Path, u.RawPath = "/"+rest, ""
	copied.URL = &u
	return id, &copied, nil
}

// recordedTurn serves a request of a rollout.
func (h *handler) recordedTurn(w http.ResponseWriter, r *http.Request, id string, routes http.Handler) error {
	if h.Rollouts == nil {
		return &wire.Error{
			Status:  http.StatusNotFound,
			Message: "this server records no rollouts; Config.Rollouts of package server is not set",
			Type:    wire.TypeInvalid,
			Code:    "rollout_not_found",
		}
	}
	if !servedToRollouts(r.URL.Path) {
		return notRecorded(r.URL.Path)
	}
	rollout, err := h.Rollouts.begin(ownerOf(r.Context()), id)
	if err != nil {
		return err
	}
	defer h.Rollouts.finish(rollout)
	ctx, stop := rollout.context(r.Context())
	defer stop()
	routes.ServeHTTP(w, r.WithContext(ctx))
	return nil
}

// servedToRollouts reports whether what a path samples is recorded, or it samples nothing.
func servedToRollouts(path string) bool {
	return slices.Contains(recordedPaths, path) || slices.Contains(plainPaths, path) ||
		strings.HasPrefix(path, "/v1/models/")
}

// notRecorded is the error of a route that could sample without being recorded.
func notRecorded(path string) error {
	return &wire.Error{
		Status: http.StatusNotFound,
		Message: path + " is not served to a rollout, for it is not recorded; there is " +
			strings.Join(recordedPaths, ", "),
		Type: wire.TypeInvalid,
		Code: "not_recorded",
	}
}

// context returns the context of a request of the rollout. It ends when the rollout is closed.
func (r *rollout) context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(ctx, rolloutModelKey{}, r.model.Name())
	if r.pin != nil {
		ctx = r.pin.Context(ctx)
	}
	ctx, cancel := context.WithCancelCause(r.recorder.Context(ctx))
	stop := context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}
