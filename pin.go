package art

import "context"

// Pinner is a [Backend] that can go on answering with a step when the next ones are made.
type Pinner interface {
	// Pin returns a context by which m answers with the step that is the newest now, and that step.
	Pin(ctx context.Context, m *Model) (pinned context.Context, step int, err error)
}

// pinKey is the context key of the step to which a model is pinned.
type pinKey struct{ m *Model }

// Pin returns a context with which the newest step of now answers all calls of the model, also when later ones are
// made: an evaluation beside training measures one policy. It holds for calls in this process, by [Model.Chat] or
// [Model.HTTPClient].
//
// It returns [ErrNotRegistered], and [ErrUnsupported] when the backend is no [Pinner].
func (m *Model) Pin(ctx context.Context) (context.Context, error) {
	pinner, err := capability[Pinner](m, "pin", "art.Pinner, such as backend/local")
	if err != nil {
		return nil, err
	}
	pinned, step, err := pinner.Pin(ctx, m)
	if err != nil {
		return nil, err
	}
	return context.WithValue(pinned, pinKey{m}, step), nil
}

// answers returns the step that answers calls with ctx.
func (m *Model) answers(ctx context.Context) int {
	if step, ok := ctx.Value(pinKey{m}).(int); ok {
		return step
	}
	return m.Step()
}
