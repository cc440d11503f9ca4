package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// Export writes m as a model of its own, the adapter of its newest step merged into the weights, into a new folder that
// transformers and [Open] read: config.json, safetensors and the tokenizer. opts may be nil; its Edit sees the merged
// values. A folder that is not empty is an error.
func (b *Backend) Export(ctx context.Context, m *art.Model, dir string, opts *model.SaveOptions) error {
	e, err := b.stored("export", m)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	var adapter *lora.Adapter
	if step := e.serving.Load().step; !m.Options().Frozen {
		if folder, ok := e.run.Checkpoint(step); !ok {
			err = fmt.Errorf("%w: no checkpoint of step %d", art.ErrCorrupt, step)
		} else {
			adapter, err = lora.Load(folder)
		}
	}
	if err == nil {
		err = e.base.export(dir, adapter, opts)
	}
	if err != nil {
		return &art.Error{Op: "export", Err: err}
	}
	return nil
}

// export reads the base model again, tensor by tensor: on the device its weights may be packed.
func (s *base) export(dir string, a *lora.Adapter, opts *model.SaveOptions) (err error) {
	open, err := basemodel.Open(s.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	return open.Export(dir, a, opts)
}
