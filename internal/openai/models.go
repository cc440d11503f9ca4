package openai

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// Models returns the models that are served, in the order in which they are listed. It is called for each request and
// may be called concurrently.
type Models func() []*art.Model

// ModelInfo is an entry of the models list.
type ModelInfo struct {
	ID      string `json:"id"`
	Object  string `json:"object"`   // "model"
	Created int64  `json:"created"`  // always 0: it is not known
	OwnedBy string `json:"owned_by"` // "art"
	Step    int    `json:"step"`     // the policy step that answers now
}

// ModelList is the body of GET /v1/models.
type ModelList struct {
	Object string      `json:"object"` // "list"
	Data   []ModelInfo `json:"data"`
}

// newModelInfo describes a model as it is now.
func newModelInfo(m *art.Model) ModelInfo {
	return ModelInfo{ID: m.Name(), Object: "model", OwnedBy: "art", Step: m.Step()}
}

// pinKey is the context key of the name of the only model that a request sees.
type pinKey struct{}

// pinned reports whether a request sees one model only: it comes from a [Transport] then.
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

// find returns the model of a name, or of name@step if step is the current one at this moment. A pinned model answers
// to every name.
func (models Models) find(ctx context.Context, id string) (*art.Model, error) {
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
			return nil, unknownModel("model %s is not served: only the current step is, which is %q; ask for that or for %q",
				quoted(id), now, m.Name())
		}
	}
	return nil, unknownModel("there is no model %s; %s", quoted(id), listNames(visible))
}

// listNames says which models there are.
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
func unknownModel(format string, args ...any) *Error {
	return &Error{
		Status:  http.StatusNotFound,
		Message: fmt.Sprintf(format, args...),
		Type:    typeInvalid,
		Param:   "model",
		Code:    "model_not_found",
	}
}
