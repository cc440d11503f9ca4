package art

import "context"

// Pinner is a [Backend] that can go on answering with a step when the next ones are made.
type Pinner interface {
	// Pin returns the step of m that is the newest now, and what makes a context with which it answers.
	Pin(m *Model) (pinned func(ctx context.Context) context.Context, step int, err error)
}

// Pin is a step of a model that goes on answering when the next ones are made: an evaluation beside training measures
// one policy, and self-play has its past as the opponent. The step stays in memory as long as the Pin.
type Pin struct {
	model  *Model
	step   int
	pinned func(context.Context) context.Context
}

// pinKey is the context key of the step to which a model is pinned.
type pinKey struct{ m *Model }

// Pin returns a pin of the newest step.
//
// It returns [ErrNotRegistered], and [ErrUnsupported] when the backend is no [Pinner].
func (m *Model) Pin() (*Pin, error) {
	pinner, err := capability[Pinner](m, "pin", "art.Pinner, such as backend/local")
	if err != nil {
		return nil, err
	}
	pinned, step, err := pinner.Pin(m)
	if err != nil {
		return nil, err
	}
	return &Pin{m, step, pinned}, nil
}

// Step returns the step.
func (p *Pin) Step() int { return p.step }

// Context returns a context with which the step answers the calls of its model. It holds for calls in this process, by
// [Model.Chat] or [Model.HTTPClient].
func (p *Pin) Context(ctx context.Context) context.Context {
	return context.WithValue(p.pinned(ctx), pinKey{p.model}, p.step)
}

// answers returns the step that answers calls with ctx.
func (m *Model) answers(ctx context.Context) int {
	if step, ok := ctx.Value(pinKey{m}).(int); ok {
		return step
	}
	return m.Step()
}
