package server

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// Models returns the registered models that are served, in the order in which they are listed. It is called for each
// request, possibly concurrently.
type Models func() []*art.Model

// pinKey is the context key of the name of the only model that a request sees.
type pinKey struct{}

// pinned reports whether a request comes from a [Transport] and sees one model only.
func pinned(ctx context.Context) bool { return ctx.Value(pinKey{}) != nil }

// visible returns the models that a request may see: all of them, or the pinned one.
func (models Models) visible(ctx context.Context) []*art.Model {
	all := models()
	pin, pinned := ctx.Value(pinKey{}).(string)
	if !pinned {
		return all
	}
	for _, m := range all {
		if m.Name() == pin {
			return []*art.Model{m}
		}
	}
	return nil
}

// resolve returns the model named id, and for name@step a pin of that step, if the backend can pin it: the newest or an
// older one.
func (models Models) resolve(ctx context.Context, id string) (*art.Model, *art.Pin, error) {
	_, ofRollout := ctx.Value(rolloutModelKey{}).(string)
	at := strings.LastIndexByte(id, '@')
	if step, err := strconv.Atoi(id[at+1:]); at > 0 && err == nil && step >= 0 && !ofRollout && !pinned(ctx) {
		if m, err := models.find(ctx, id[:at]); err == nil {
			if pin, err := m.PinStep(ctx, step); err == nil {
				return m, pin, nil
			}
		}
	}
	m, err := models.find(ctx, id)
	return m, nil, err
}

// model returns the model that a request names, and the request with the step that it names. one allows requests
// without a name when there is one model.
func (h *handler) model(r *http.Request, id string, one bool) (*art.Model, *http.Request, error) {
	if one && id == "" {
		if visible := h.models.visible(r.Context()); len(visible) == 1 {
			return visible[0], r, nil
		}
		m, err := h.models.find(r.Context(), id)
		return m, r, err
	}
	var m *art.Model
	var pin *art.Pin
	var err error
	if h.Find != nil {
		m, pin, err = h.Find(r, id)
	}
	if m == nil && err == nil {
		m, pin, err = h.models.resolve(r.Context(), id)
	}
	if pin != nil {
		r = r.WithContext(pin.Context(r.Context()))
	}
	return m, r, err
}

// find returns the model named id, which is name or name@step if step is the current one. A pinned model, and that of a
// rollout, answers to every name.
func (models Models) find(ctx context.Context, id string) (*art.Model, error) {
	if name, ok := ctx.Value(rolloutModelKey{}).(string); ok {
		id = name
	}
	if pin, pinned := ctx.Value(pinKey{}).(string); pinned {
		id = pin
	}
	visible := models.visible(ctx)
	for _, m := range visible {
		if id == m.Name() {
			return m, nil
		}
	}
	for _, m := range visible {
		now := fmt.Sprintf("%s@%d", m.Name(), m.Step())
		if id == now {
			return m, nil
		}
		if strings.HasPrefix(id, m.Name()+"@") {
			return nil, unknownModel("model %s is not served: the current step is %q, and an older one needs a checkpoint; "+
				"ask for that or for %q", wire.Quote(id), now, m.Name())
		}
	}
	return nil, unknownModel("there is no model %s; %s", wire.Quote(id), listNames(visible))
}

func listNames(models []*art.Model) string {
	if len(models) == 0 {
		return "none is registered"
	}
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = strconv.Quote(m.Name())
	}
	return "there is " + strings.Join(names, ", ")
}

// unknownModel returns the error of a model that is not served.
func unknownModel(format string, args ...any) *wire.Error {
	e := refused(http.StatusNotFound, "model_not_found", format, args...)
	e.Param = "model"
	return e
}
