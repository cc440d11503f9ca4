package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/basemodel"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/hub"
	"github.com/goart-dev/art/model/tiny"
)

// description is model.json: what identifies a run, and cannot change. AdapterSHA256 is that of adapterDigest.
type description rundir.Description

// warnChanges warns of changes that a run allows, but that affect its results.
func (d description) warnChanges(now description, log *slog.Logger) {
	if d.Device != now.Device {
		log.Warn("the run continues on another device", "model", d.Name, "started", d.Device, "now", now.Device)
	}
	if was := d.weights(); was != now.Weights {
		log.Warn("the run continues with another type of weights", "model", d.Name, "started", was, "now", now.Weights)
	}
	if was, is := cmp.Or(d.Activations, "float32"), cmp.Or(now.Activations, "float32"); was != is {
		log.Warn("the run continues with another type of activations", "model", d.Name, "started", was, "now", is)
	}
}

// weights is the type of the base's matrices with which a run was started. Runs of layout 2 may lack it.
func (d description) weights() string { return cmp.Or(d.Weights, "float32") }

// check reports options that differ from those of the run in dir.
func (d description) check(want description, dir string) error {
	differences := d.differences(want)
	if differences == nil {
		return nil
	}
	hint := "use another model name for a new run, or the options of the old one to continue it"
	if n, err := hub.ParseName(d.Base); err == nil && d.Commit != want.Commit && d.Commit != "" {
		hint = fmt.Sprintf("set Base to %q to continue with the weights of the run", n.Repo+"@"+d.Commit)
	}
	return invalid("register", hint, "the run in %s was made with other options: %s", dir, strings.Join(differences, "; "))
}

// differences lists the options that differ from those of the run.
func (d description) differences(now description) (list []string) {
	compare := func(what string, was, is any) {
		if !reflect.DeepEqual(was, is) {
			list = append(list, fmt.Sprintf("%s was %v and is now %v", what, was, is))
		}
	}
	compare("Name", strconv.Quote(d.Name), strconv.Quote(now.Name))
	compare("Project", strconv.Quote(d.Project), strconv.Quote(now.Project))
	if !d.sameBase(now) {
		compare("Base", d.baseText(), now.baseText())
	}
	compare("Frozen", d.Frozen, now.Frozen)
	compare("Full", d.Full, now.Full)
	switch {
	case d.AdapterSHA256 != now.AdapterSHA256:
		compare("Adapter", d.adapterText(), now.adapterText())
	case d.AdapterSHA256 == "" && !d.Frozen: // otherwise LoRA is not used
		compare("LoRA.Rank", d.LoRA.Rank, now.LoRA.Rank)
		compare("LoRA.Alpha", d.LoRA.Alpha, now.LoRA.Alpha)
		compare("LoRA.Targets", d.LoRA.Targets, now.LoRA.Targets)
		compare("LoRA.TargetPattern", strconv.Quote(d.LoRA.TargetPattern), strconv.Quote(now.LoRA.TargetPattern))
		compare("LoRA.RankStabilized", d.LoRA.RankStabilized, now.LoRA.RankStabilized)
		compare("LoRA.DoRA", d.LoRA.DoRA, now.LoRA.DoRA)
		compare("LoRA.Ranks", fmt.Sprint(d.LoRA.Ranks), fmt.Sprint(now.LoRA.Ranks)) // nil is equal to empty
		compare("LoRA.Alphas", fmt.Sprint(d.LoRA.Alphas), fmt.Sprint(now.LoRA.Alphas))
	}
	compare("Seed", d.Seed, now.Seed)
	return list
}

// sameBase reports whether two names are of the same base model, such as a branch and its commit, or two paths of a
// file.
func (d description) sameBase(now description) bool {
	if d.Base == tiny.Name && now.Base == tiny.Name && (d.SHA256 == "" || now.SHA256 == "") {
		return true // begun before v0.1.0, which did not record it; an adapter of another shape is refused when it is read
	}
	if d.Commit != now.Commit || d.SHA256 != now.SHA256 {
		return false
	}
	return d.Commit != "" || d.SHA256 != "" || d.Base == now.Base
}

func (d description) baseText() string {
	switch {
	case d.Commit != "":
		return strconv.Quote(d.Base) + " at commit " + d.Commit
	case d.SHA256 != "":
		return strconv.Quote(d.Base) + " with SHA-256 " + d.SHA256
	}
	return strconv.Quote(d.Base)
}

func (d description) adapterText() string {
	if d.Fork != "" {
		return "that of " + d.Fork + " with SHA-256 " + d.AdapterSHA256 + " of its content"
	}
	if d.Adapter == "" {
		return "none"
	}
	return strconv.Quote(d.Adapter) + " with SHA-256 " + d.AdapterSHA256 + " of its content"
}

// location is where a base model is.
type location struct {
	path   string // of a folder or a file; tiny.Name for the built-in model
	commit string // of the hub's repository; empty for models that are not from the hub
	// digest returns the SHA-256 of a file, or of the built-in model's weights; empty for a folder. That of a file is
	// computed meanwhile, and waited for.
	digest func() (string, error)
}

// locate finds a base model. A folder or a file takes precedence over a model of the same name on the hub. A model of
// the hub is fetched if it is not in the cache.
func (b *Backend) locate(ctx context.Context, name string) (location, error) {
	switch {
	case name == tiny.Name:
		return location{path: name, digest: func() (string, error) { return tiny.Digest(), nil }}, nil
	case basemodel.IsFolder(name):
		return location{path: name, digest: noDigest}, nil
	case basemodel.IsFile(name):
		if _, err := model.LoadConfig(name); err != nil { // before the whole file is read
			return location{}, baseError(name, err)
		}
		digest := sync.OnceValues(func() (string, error) {
			digest, err := fileDigest(ctx, name)
			if err != nil {
				err = baseError(name, err)
			}
			return digest, err
		})
		go func() { _, _ = digest() }() // who waits for it gets the error
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
	return location{path: snapshot.Dir, commit: snapshot.Commit, digest: noDigest}, nil
}

func noDigest() (string, error) { return "", nil }

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
		Check:    basemodel.CheckConfig,
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
