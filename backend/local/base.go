package local

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
	"github.com/goart-dev/art/tokenizer"
)

// base is a base model in memory, and its engine. Models on the same base share it.
type base struct {
	config    *model.Config
	params    *model.Params
	tokenizer *tokenizer.Tokenizer
	template  *tokenizer.Template
	engine    *engine.Engine
}

// base returns the base model of a folder that [Backend.locate] found; it loads it when it is the first to ask. b.mu is
// held.
func (b *Backend) base(name, folder string) (*base, error) {
	if s := b.bases[folder]; s != nil {
		return s, nil
	}
	s, err := loadBase(folder, b.device)
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
	b.bases[folder] = s
	b.opts.Logger.Info("base model loaded", "base", name, "context", s.engine.Context())
	return s, nil
}

func loadBase(folder string, device compute.Backend) (*base, error) {
	t, err := loadTokenizer(folder)
	if err != nil {
		return nil, err
	}
	s := &base{tokenizer: t}
	if s.template, err = t.Template(""); err != nil {
		return nil, err
	}
	return s, s.load(folder, device)
}

func loadTokenizer(folder string) (*tokenizer.Tokenizer, error) {
	if folder == tiny.Name {
		return tokenizer.New(tiny.Tokenizer())
	}
	return tokenizer.Load(folder)
}

// load brings the weights to the device. The host keeps none.
func (s *base) load(folder string, device compute.Backend) (err error) {
	if folder == tiny.Name {
		w, err := tiny.Load()
		if err != nil {
			return err
		}
		s.config = w.Config
		s.params, err = w.Params(device)
		return err
	}
	c, err := model.Open(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	s.config = c.Config
	if n := s.tokenizer.VocabSize(); n > c.Config.VocabSize {
		return fmt.Errorf("the tokenizer has %d ids, the model %d: they do not belong together", n, c.Config.VocabSize)
	}
	s.params, err = c.Params(device)
	return err
}
