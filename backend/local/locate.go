package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/hub"
	"github.com/goart-dev/art/model/tiny"
)

// location is where a base model is.
type location struct {
	path   string // of a folder or a file; tiny.Name for the built-in model
	commit string // of the hub's repository; empty for models that are not from the hub
	digest string // SHA-256 of a file, or of the built-in model's weights; empty for a folder
}

// locate finds a base model. A folder or a file takes precedence over a model of the same name on the hub. A model of
// the hub is fetched if it is not in the cache.
func (b *Backend) locate(ctx context.Context, name string) (location, error) {
	switch {
	case name == tiny.Name:
		return location{path: name, digest: tiny.Digest()}, nil
	case basemodel.IsFolder(name):
		return location{path: name}, nil
	case basemodel.IsFile(name):
		if _, err := model.LoadConfig(name); err != nil { // before the whole file is read
			return location{}, baseError(name, err)
		}
		digest, err := fileDigest(ctx, name)
		if err != nil {
			return location{}, baseError(name, err)
		}
		return location{path: name, digest: digest}, nil
	}
	if _, err := hub.ParseName(name); err != nil {
		return location{}, baseError(name, errors.New("it is neither a folder, nor a GGUF file, nor ORG/NAME"))
	}
	snapshot, err := hub.Cached(name, nil)
	if errors.Is(err, fs.ErrNotExist) {
		snapshot, err = b.pull(ctx, name)
	}
	if err != nil {
		return location{}, baseError(name, err)
	}
	b.opts.Logger.Info("base model found", "base", name, "commit", snapshot.Commit, "dir", snapshot.Dir)
	return location{path: snapshot.Dir, commit: snapshot.Commit}, nil
}

// fileDigest returns the SHA-256 of a file, by which a run recognises its weights, whatever the file is called. It
// stops when ctx ends.
func fileDigest(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, untilDone{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// untilDone is a reader that fails once ctx ends.
type untilDone struct {
	ctx context.Context
	io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}

// pull fetches a model from the hub, with a progress bar.
func (b *Backend) pull(ctx context.Context, name string) (*hub.Snapshot, error) {
	b.opts.Logger.Info("fetching base model", "base", name)
	bar := b.bytesProgress(name)
	defer bar.finish()
	return hub.Pull(ctx, name, &hub.Options{
		Check:    model.CheckConfig,
		Progress: func(p hub.Progress) { bar.set(p.Done, p.Total) },
		Retry: func(r hub.Retry) {
			b.opts.Logger.Warn("request to the hub failed",
				"base", name, "error", r.Err, "try", r.Try, "of", r.Tries, "pause", r.Pause)
		},
	})
}

// baseError is the error for a base model that cannot be used.
func baseError(name string, err error) error {
	return &art.Error{
		Op: "register", Err: fmt.Errorf("%w: %q: %w", art.ErrBaseModel, name, err),
		Hint: fmt.Sprintf("use %q, the path of a folder with config.json, model.safetensors and tokenizer.json, "+
			"that of a GGUF file, or ORG/NAME of a model on the hub", tiny.Name),
	}
}
