package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/model/hub"
	"github.com/goart-dev/art/model/tiny"
)

// place is where a base model is.
type place struct {
	folder string // tiny.Name for the built-in one
	commit string // of the hub's repository, which a branch may leave; empty for what is not of the hub
}

// locate finds a base model. A folder goes before a model of the hub that is called the same. A model of the hub is
// fetched when it is not in the cache.
func (b *Backend) locate(ctx context.Context, name string) (place, error) {
	if name == tiny.Name || isFolder(name) {
		return place{folder: name}, nil
	}
	if _, err := hub.ParseName(name); err != nil {
		return place{}, baseError(name, errors.New("it is neither a folder nor ORG/NAME"))
	}
	snapshot, err := hub.Cached(name, nil)
	if errors.Is(err, fs.ErrNotExist) {
		snapshot, err = b.pull(ctx, name)
	}
	if err != nil {
		return place{}, baseError(name, err)
	}
	b.opts.Logger.Info("base model found", "base", name, "commit", snapshot.Commit, "dir", snapshot.Dir)
	return place{snapshot.Dir, snapshot.Commit}, nil
}

// pull fetches a model of the hub, behind a progress bar.
func (b *Backend) pull(ctx context.Context, name string) (*hub.Snapshot, error) {
	b.opts.Logger.Info("fetching base model", "base", name)
	bar := b.bytesProgress(name)
	defer bar.finish()
	return hub.Pull(ctx, name, &hub.Options{Progress: func(p hub.Progress) { bar.set(p.Done, p.Total) }})
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// baseError says that a base model cannot be used, and what can.
func baseError(name string, err error) error {
	return &art.Error{
		Op: "register", Err: fmt.Errorf("%w: %q: %w", art.ErrBaseModel, name, err),
		Hint: fmt.Sprintf("use %q, the path of a folder with config.json, model.safetensors and tokenizer.json, or ORG/NAME of a model on the hub", tiny.Name),
	}
}
