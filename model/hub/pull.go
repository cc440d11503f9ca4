// Package hub fetches models from the Hugging Face hub into the cache that Python's huggingface_hub uses.
//
//	s, err := hub.Pull(ctx, "Qwen/Qwen3-0.6B@main", nil)
//	w, err := model.Load(s.Dir)
//
// [Pull] asks the hub for the commit of a revision and fetches the files that are not in the cache; [Cached] does not
// use the network. Only what a model needs is fetched: its configuration, its tokenizer and chat template, and its
// weights as safetensors. Its configuration comes first, and the Check of [Options] may refuse it before the rest.
// Pickled weights (.bin, .pth) can run code, and are ignored.
//
// # What is checked
//
// The hub names each file by a digest: the SHA-256 of a large file, the SHA-1 of a git blob of a small one. A file
// enters the cache only if its bytes have that digest. An interrupted download resumes where it stopped, in the same
// process or in a later one. Names outside of the repository, and links out of the cache, are errors. The token is sent
// to the hub, never to servers that the hub redirects to.
//
// # Cache
//
//	models--ORG--NAME/refs/REVISION            the commit that the revision named
//	models--ORG--NAME/blobs/DIGEST             the content of a file
//	models--ORG--NAME/blobs/DIGEST.incomplete  a partial download of it
//	models--ORG--NAME/snapshots/COMMIT/FILE    a link to its blob
//	models--ORG--NAME/.no_exist/COMMIT/FILE    an empty file: the commit lacks FILE
//	.locks/models--ORG--NAME/DIGEST.lock       locked by the process that fetches it
//
// # Environment
//
//	HF_ENDPOINT                          the hub; https://huggingface.co
//	HF_TOKEN, HUGGING_FACE_HUB_TOKEN     the token
//	HF_TOKEN_PATH                        a file with the token; HF_HOME/token
//	HF_HUB_DISABLE_IMPLICIT_TOKEN        1: no token from the environment
//	HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE  the cache; HF_HOME/hub
//	HF_HOME                              XDG_CACHE_HOME/huggingface, or ~/.cache/huggingface
//	HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE 1: never use the network
//
// Layout: https://huggingface.co/docs/huggingface_hub/guides/manage-cache
package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	hfhub "github.com/gomlx/go-huggingface/hub"

	"github.com/goart-dev/art/internal/safetensors"
)

// Snapshot is a model in the cache.
type Snapshot struct {
	Name   Name
	Commit string   // of the repository, 40 hexadecimal digits
	Dir    string   // the folder with its files
	Files  []string // their names
}

// Pull brings a model into the cache and returns it. name is ORG/NAME or ORG/NAME@revision. It asks the hub for
// the current commit of the revision; files in the cache are not fetched again. opts may be nil.
//
// After an error or a kill, the next call resumes. Offline, Pull is [Cached].
func Pull(ctx context.Context, name string, opts *Options) (*Snapshot, error) {
	n, o, err := prepare(name, opts)
	if err != nil {
		return nil, err
	}
	if o.Offline {
		return Cached(name, opts)
	}
	s, err := (&pull{client: client{o, n}}).run(ctx)
	if err != nil {
		return nil, fmt.Errorf("hub: %s: %w", n, err)
	}
	return s, nil
}

func prepare(name string, opts *Options) (Name, Options, error) {
	n, err := ParseName(name)
	if err != nil {
		return n, Options{}, err
	}
	o, err := opts.resolve()
	return n, o, err
}

type pull struct {
	client
	store   cache
	listing listing
	files   []string // of the model, as far as known
	done    int64    // bytes of files that are complete
	total   int64    // bytes of files
}

func (p *pull) run(ctx context.Context) (_ *Snapshot, err error) {
	if err := os.MkdirAll(p.Cache, 0o777); err != nil {
		return nil, fmt.Errorf("cache: %w; HF_HUB_CACHE names another folder", err)
	}
	if p.store, err = openCache(p.Cache, p.name); err != nil {
		return nil, err
	}
	defer p.store.root.Close()
	if p.listing, err = p.list(ctx); err != nil {
		return nil, err
	}
	if err := checkNames(p.listing.names()); err != nil {
		return nil, err
	}
	if err := p.getAll(ctx); err != nil {
		return nil, err
	}
	for _, name := range optional {
		if !slices.Contains(p.files, name) {
			if err := p.store.setAbsent(p.listing.Commit, name); err != nil {
				return nil, err
			}
		}
	}
	if err := p.store.setCommit(p.client.name.Revision, p.listing.Commit); err != nil {
		return nil, err
	}
	return newSnapshot(p.store, p.name, p.listing.Commit, p.files), nil
}

// getAll fetches the files of the model, its configuration first. The shards are known once the index has been fetched.
func (p *pull) getAll(ctx context.Context) error {
	first, err := wanted(p.listing.names())
	if err != nil {
		return err
	}
	if err := p.get(ctx, []string{configFile}); err != nil {
		return err
	}
	if err := p.checkConfig(); err != nil {
		return err
	}
	first = slices.DeleteFunc(first, func(name string) bool { return name == configFile })
	if err := p.get(ctx, first); err != nil {
		return err
	}
	if !slices.Contains(first, indexFile) {
		return nil
	}
	shards, err := readIndex(p.store, p.listing.Commit)
	if err != nil {
		return err
	}
	if err := checkShards(shards, p.listing.names()); err != nil {
		return err
	}
	return p.get(ctx, shards)
}

func (p *pull) checkConfig() error {
	if p.Check == nil {
		return nil
	}
	content, err := p.store.readSmall(p.listing.Commit, configFile)
	if err != nil {
		return err
	}
	if err := p.Check(content); err != nil {
		return fmt.Errorf("it cannot be used here, and its weights were not fetched: %w", err)
	}
	return nil
}

func (p *pull) get(ctx context.Context, names []string) error {
	p.files = append(p.files, names...)
	missing, err := p.missing(ctx, names)
	if err != nil {
		return err
	}
	for _, f := range missing {
		report := func(have int64) {
			if p.Progress != nil {
				p.Progress(Progress{File: f.name, Done: p.done + have, Total: p.total})
			}
		}
		if err := p.fetch(ctx, p.store, p.listing.Commit, f, report); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := p.store.link(p.listing.Commit, f.name, f.digest); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		p.done += f.size
	}
	return nil
}

// missing describes the files that are not in the cache. A commit does not change, so the others need no request.
func (p *pull) missing(ctx context.Context, names []string) ([]remoteFile, error) {
	var out []remoteFile
	for _, name := range names {
		if ok, err := p.store.has(p.listing.Commit, name); ok || err != nil {
			if err != nil {
				return nil, err
			}
			continue
		}
		at := slices.IndexFunc(p.listing.Files, func(f hfhub.FileInfo) bool { return f.Name == name })
		f, err := p.describe(ctx, p.listing.Commit, p.listing.Files[at])
		if err != nil {
			return nil, err
		}
		p.total += f.size
		out = append(out, f)
	}
	return out, nil
}

// readSmall reads a file of a commit that is no weights.
func (c cache) readSmall(commit, file string) ([]byte, error) {
	name := c.filePath(commit, file)
	info, err := c.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > safetensors.MaxHeader {
		return nil, fmt.Errorf("its %s has %d bytes, more than %d", file, info.Size(), safetensors.MaxHeader)
	}
	return c.root.ReadFile(name)
}

func readIndex(store cache, commit string) ([]string, error) {
	content, err := store.readSmall(commit, indexFile)
	if err != nil {
		return nil, err
	}
	shards, err := safetensors.Shards(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", indexFile, err)
	}
	return shards, nil
}

func newSnapshot(store cache, name Name, commit string, files []string) *Snapshot {
	dir := filepath.Join(store.root.Name(), filepath.FromSlash(store.snapshotPath(commit)))
	slices.Sort(files)
	return &Snapshot{Name: name, Commit: commit, Dir: dir, Files: files}
}

// Cached returns a model from the cache, without using the network. A revision is the commit that it named when it was
// fetched. The error wraps [fs.ErrNotExist] if the model, or a part of it, is missing. opts may be nil.
func Cached(name string, opts *Options) (*Snapshot, error) {
	n, o, err := prepare(name, opts)
	if err != nil {
		return nil, err
	}
	store, err := openCache(o.Cache, n)
	if err == nil {
		defer store.root.Close()
		var s *Snapshot
		if s, err = store.find(n, o.Offline); err == nil {
			return s, nil
		}
	}
	return nil, fmt.Errorf("hub: %s is not in the cache %s: %w; `art model pull %[1]s` fetches it", n, o.Cache, err)
}

// find returns a complete snapshot. Python fetches the files of a model one by one, so its snapshots may lack some that
// the repository has; offline, optional files may be missing.
func (c cache) find(n Name, offline bool) (*Snapshot, error) {
	commit, err := c.commit(n.Revision)
	if err != nil {
		return nil, err
	}
	files := slices.Clone(required)
	for _, name := range optional {
		there, err := c.has(commit, name)
		if err != nil {
			return nil, err
		}
		absent, err := c.lacks(commit, name)
		if err != nil {
			return nil, err
		}
		if there || !absent && !offline {
			files = append(files, name)
		}
	}
	weights, err := c.weights(commit)
	if err != nil {
		return nil, err
	}
	files = append(files, weights...)
	for _, name := range files {
		if ok, err := c.has(commit, name); err != nil || !ok {
			return nil, errors.Join(err, fmt.Errorf("%s of commit %s: %w", name, commit, fs.ErrNotExist))
		}
	}
	return newSnapshot(c, n, commit, files), nil
}

func (c cache) weights(commit string) ([]string, error) {
	sharded, err := c.has(commit, indexFile)
	if err != nil || !sharded {
		return []string{weightsFile}, err
	}
	shards, err := readIndex(c, commit)
	return append(shards, indexFile), err
}
