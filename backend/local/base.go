package local

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/tokenizer"
)

// base is a base model in memory, and its engine. Models on the same base share it.
type base struct {
	path      string
	config    *model.Config
	params    *model.Params
	tokenizer *tokenizer.Tokenizer
	template  *tokenizer.Template
	engine    *engine.Engine
}

// base returns the base model that [Backend.locate] found; it loads it when it is the first to ask. b.mu is held.
func (b *Backend) base(name string, at place) (*base, error) {
	if s := b.bases[at.path]; s != nil {
		return s, nil
	}
	s, err := loadBase(at.path, b.device, b.matrices)
	if err != nil {
		return nil, baseError(name, err)
	}
	s.engine, err = engine.New(engine.Options{
		Device: b.device, Config: s.config, Params: s.params, Tokenizer: s.tokenizer, Slots: b.opts.Slots, Context: b.opts.Context,
		FewShapes: compilesSlowly(b.device), DecodeSteps: stepsOf(b.device),
	})
	if err != nil {
		return nil, &art.Error{Op: "register", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err), Hint: "change Slots or Context of local.Options"}
	}
	b.bases[at.path] = s
	b.opts.Logger.Info("base model loaded", "base", name, "context", s.engine.Context())
	return s, nil
}

// loadBase brings the weights to the device. The host keeps none.
func loadBase(path string, device compute.Backend, matrices dtypes.DType) (s *base, err error) {
	open, err := basemodel.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	s = &base{path: path, config: open.Config, tokenizer: open.Tokenizer}
	if s.template, err = s.tokenizer.Template(""); err != nil {
		return nil, err
	}
	s.params, err = open.ParamsAs(device, matrices)
	return s, err
}
