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

// Export writes m as a model of its own, the adapter of its newest step merged into the weights, or all weights of
// that, into a new folder that transformers and [Open] read: config.json, safetensors and the tokenizer. opts may be
// nil; its Edit sees the merged values. A folder that is not empty is an error.
func (b *Backend) Export(ctx context.Context, m *art.Model, dir string, opts *model.SaveOptions) error {
	e, err := b.stored("export", m)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	var adapter *lora.Adapter
	from := e.base.path
	if step := e.serving.Load().step; !m.Options().Frozen {
		switch folder, ok := e.run.Checkpoint(step); {
		case !ok:
			err = fmt.Errorf("%w: no checkpoint of step %d", art.ErrCorrupt, step)
		case isFull(folder):
			from = folder
		default:
			adapter, err = lora.Load(folder)
		}
	}
	if err == nil {
		err = export(from, dir, adapter, opts)
	}
	if err != nil {
		return &art.Error{Op: "export", Err: err}
	}
	return nil
}

// export reads a model again, tensor by tensor: on the device its weights may be packed.
func export(path, dir string, a *lora.Adapter, opts *model.SaveOptions) (err error) {
	open, err := basemodel.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, open.Close()) }()
	return open.Export(dir, a, opts)
}
