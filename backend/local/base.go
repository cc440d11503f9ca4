package local

import (
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
	})
	if err != nil {
		return nil, &art.Error{Op: "register", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err), Hint: "change Slots or Context of local.Options"}
	}
	b.bases[folder] = s
	b.opts.Logger.Info("base model loaded", "base", name, "context", s.engine.Context())
	return s, nil
}

func loadBase(folder string, device compute.Backend) (s *base, err error) {
	load := loadFolder
	if folder == tiny.Name {
		load = loadTiny
	}
	weights, t, err := load(folder)
	if err != nil {
		return nil, err
	}
	s = &base{config: weights.Config, tokenizer: t} // the weights are on the device from then on, and nowhere else
	if s.template, err = s.tokenizer.Template(""); err != nil {
		return nil, err
	}
	if n := s.tokenizer.VocabSize(); n > s.config.VocabSize {
		return nil, fmt.Errorf("the tokenizer has %d ids, the model %d: they do not belong together", n, s.config.VocabSize)
	}
	s.params, err = weights.Params(device)
	return s, err
}

func loadTiny(string) (*model.Weights, *tokenizer.Tokenizer, error) {
	w, err := tiny.Load()
	if err != nil {
		return nil, nil, err
	}
	t, err := tokenizer.New(tiny.Tokenizer())
	return w, t, err
}

func loadFolder(dir string) (*model.Weights, *tokenizer.Tokenizer, error) {
	w, err := model.Load(dir)
	if err != nil {
		return nil, nil, err
	}
	t, err := tokenizer.Load(dir)
	return w, t, err
}
