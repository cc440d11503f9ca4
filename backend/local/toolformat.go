package local

import (
	"errors"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer/chat"
)

// templateOf returns the chat template of a model. Parts of replies that cannot be parsed are logged.
func (b *Backend) templateOf(s *base, m *art.Model) (*chat.Template, error) {
	t, err := s.template.With(chat.Options{ToolFormat: m.Options().ToolFormat})
	if err != nil {
		err = fmt.Errorf("%w: %w", art.ErrInvalid, err)
		return nil, &art.Error{Op: "register", Err: err, Hint: "correct ModelOptions.ToolFormat"}
	}
	for _, warning := range t.Warnings() {
		b.opts.Logger.Warn("not all replies to the chat template can be parsed", "model", m.Name(), "template", warning)
	}
	return t, nil
}

// promptError translates an error of rendering a prompt.
func promptError(err error) error {
	e := &art.Error{Op: "complete", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err)}
	if errors.Is(err, chat.ErrToolsLeftOut) {
		e.Hint = `set ModelOptions.ToolFormat, such as to "hermes", or send no tools and no calls of tools`
	}
	return e
}
