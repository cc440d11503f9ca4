package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/goart-dev/art"
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

func (h *handler) showRollout(w http.ResponseWriter, r *http.Request) error {
	t, err := h.Rollouts.show(ownerOf(r.Context()), r.PathValue("id"))
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, t)
}

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
		return "", nil, refused(http.StatusBadRequest, "",
			"the path and the header %s name different rollouts; leave the header out", rolloutHeader)
	}
	copied, u := *r, *r.URL
	u.Path, u.RawPath = "/"+rest, ""
	copied.URL = &u
	return id, &copied, nil
}

func (h *handler) recordedTurn(w http.ResponseWriter, r *http.Request, id string, routes http.Handler) error {
	if h.Rollouts == nil {
		return refused(http.StatusNotFound, "rollout_not_found",
			"this server records no rollouts; Config.Rollouts of package server is not set")
	}
	if !servedToRollouts(r.URL.Path) {
		return refused(http.StatusNotFound, "not_recorded",
			"%s is not served to a rollout, for it is not recorded; there is %s", r.URL.Path, strings.Join(recordedPaths, ", "))
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

// maxGroupName limits the name of a group, in bytes.
const maxGroupName = 200

// openRequest is the body of POST /v1/rollouts.
type openRequest struct {
	Model     string `json:"model"`
	Scenario  string `json:"scenario"`
	Metadata  labels `json:"metadata"`
	Group     string `json:"group"`
	GroupSize int    `json:"group_size"`
	Pin       bool   `json:"pin"` // to the newest step

	pin *art.Pin // nil without Pin
}

// closeRequest is the body of POST /v1/rollouts/{id}/close.
type closeRequest struct {
	Reward   *float64           `json:"reward"`
	Metrics  map[string]float64 `json:"metrics"`
	Metadata labels             `json:"metadata"`
	Logs     []string           `json:"logs"`
	Failure  string             `json:"failure"`
}

// labels are the metadata of a trajectory.
type labels map[string]label

// label is a string, bool, int, float64 or nil.
type label struct{ value any }

// UnmarshalJSON reads a number without fraction and exponent as an int.
func (l *label) UnmarshalJSON(data []byte) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&l.value); err != nil {
		return err
	}
	switch v := l.value.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil && int64(int(i)) == i {
			l.value = int(i)
			return nil
		}
		f, err := v.Float64()
		l.value = f
		return err
	case map[string]any, []any:
		return errors.New("metadata has an object or a list; its values are strings, numbers, booleans and null")
	}
	return nil
}

// values returns the labels as a trajectory has them.
func (l labels) values() map[string]any {
	out := make(map[string]any, len(l))
	for key, v := range l {
		out[key] = v.value
	}
	return out
}

// check refuses the names that the server sets itself.
func (l labels) check() error {
	for _, reserved := range []string{"rollout", "scenario", "group"} {
		if _, ok := l[reserved]; ok {
			return wire.FieldError("metadata", "has %q, which the server sets; use another name", reserved)
		}
	}
	return nil
}

// decodeOpen reads and validates the request to open a rollout.
func decodeOpen(body []byte) (*openRequest, error) {
	req := &openRequest{}
	if err := decodeStrict(body, req); err != nil {
		return nil, err
	}
	switch {
	case req.Model == "":
		return nil, wire.FieldError("model", "is missing; GET /v1/models lists them")
	case req.GroupSize < 0:
		return nil, wire.FieldError("group_size", "is %d, want > 0", req.GroupSize)
	case req.GroupSize > 0 && req.Group == "":
		return nil, wire.FieldError("group", "is missing; rollouts with the same name are compared")
	case len(req.Group) > maxGroupName || strings.ContainsFunc(req.Group, isSeparator):
		return nil, wire.FieldError("group", "has a slash, control characters or more than %d bytes", maxGroupName)
	}
	return req, req.Metadata.check()
}

// isSeparator reports whether a character cannot be in an element of a path.
func isSeparator(r rune) bool { return r < ' ' || r == '/' }

// decodeClose reads and validates the request to close a rollout.
func decodeClose(body []byte) (*closeRequest, error) {
	req := &closeRequest{}
	if err := decodeStrict(body, req); err != nil {
		return nil, err
	}
	if req.Reward == nil && req.Failure == "" {
		return nil, wire.FieldError("reward", `is missing; a rollout that has none is closed with {"failure": "why"}`)
	}
	if req.Reward != nil && req.Failure != "" {
		return nil, wire.FieldError("failure", "is set, and reward too; send one of them")
	}
	return req, req.Metadata.check()
}

// decodeStrict decodes an object, and refuses unknown fields: a misspelled reward must not be lost.
func decodeStrict(body []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil && bytes.IndexByte(bytes.TrimSpace(body), '{') != 0 {
		err = errors.New("it is not an object") // null
	}
	if _, more := d.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("there is something behind the object")
	}
	if err == nil {
		return nil
	}
	reason := strings.TrimPrefix(err.Error(), "json: ")
	return refused(http.StatusBadRequest, "", "the body could not be decoded: %s", reason)
}

// apply puts what the client says at the end into the trajectory. req may be nil.
func (req *closeRequest) apply(t *art.Trajectory) {
	if req == nil {
		return
	}
	if req.Reward != nil {
		t.Reward = *req.Reward
	}
	maps.Copy(t.Metrics, req.Metrics)
	maps.Copy(t.Metadata, req.Metadata.values())
	t.Logs = append(t.Logs, req.Logs...)
}

// rolloutInfo describes a rollout to a client.
type rolloutInfo struct {
	Object    string `json:"object"` // "rollout"
	ID        string `json:"id"`
	Base      string `json:"base"` // path before /v1/chat/completions
	Model     string `json:"model"`
	Status    string `json:"status"`
	Step      *int   `json:"step,omitempty"` // that the rollout is pinned to
	Group     string `json:"group,omitempty"`
	GroupSize int    `json:"group_size,omitempty"`
}

// info describes a rollout. The mutex of [Rollouts] is held.
func (r *rollout) info() rolloutInfo {
	i := rolloutInfo{Object: "rollout", ID: r.id, Base: rolloutBase + r.id, Model: r.model.Name(), Status: r.status()}
	if r.pin != nil {
		i.Step = new(r.pin.Step())
	}
	if r.group != nil {
		i.Group, i.GroupSize = r.group.key.name, r.group.size
	}
	return i
}

// groupInfo describes a complete group to a client.
type groupInfo struct {
	Object string `json:"object"` // "rollout_group"
	Group  string `json:"group"`
	Closed int    `json:"closed"` // rollouts with a reward
	Failed int    `json:"failed"`
}

// info describes a complete group. The mutex of [Rollouts] is held.
func (g *group) info() groupInfo {
	i := groupInfo{Object: "rollout_group", Group: g.key.name}
	for _, r := range g.members {
		if r.failed != nil {
			i.Failed++
		}
	}
	i.Closed = len(g.members) - i.Failed
	return i
}
