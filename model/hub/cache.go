package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	hfhub "github.com/gomlx/go-huggingface/hub"
)

// cache is the part of the cache that holds one model. Paths are relative to the root of the cache, with slashes; paths
// and links out of the root are refused.
type cache struct {
	root *os.Root
	repo string // models--ORG--NAME
}

// openCache opens the cache of a model. The caller closes its root.
func openCache(dir string, name Name) (cache, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return cache{}, fmt.Errorf("cache: %w", err)
	}
	return cache{root, repoFolder(name)}, nil
}

func repoFolder(name Name) string {
	return string(hfhub.RepoTypeModel) + hfhub.RepoIdSeparator + strings.ReplaceAll(name.Repo, "/", hfhub.RepoIdSeparator)
}

func (c cache) refPath(revision string) string      { return path.Join(c.repo, "refs", revision) }
func (c cache) blobPath(d digest) string            { return path.Join(c.repo, "blobs", string(d)) }
func (c cache) snapshotPath(commit string) string   { return path.Join(c.repo, "snapshots", commit) }
func (c cache) filePath(commit, file string) string { return path.Join(c.snapshotPath(commit), file) }
func (c cache) absentPath(commit, file string) string {
	return path.Join(c.repo, ".no_exist", commit, file)
}

// commit returns the commit that a revision named when it was fetched.
func (c cache) commit(revision string) (string, error) {
	if isCommit(revision) {
		return revision, nil
	}
	content, err := c.root.ReadFile(c.refPath(revision))
	if err != nil {
		return "", err
	}
	commit := strings.TrimSpace(string(content))
	if !isCommit(commit) {
		return "", fmt.Errorf("%s is not a commit; delete it", filepath.Join(c.root.Name(), c.refPath(revision)))
	}
	return commit, nil
}

// setCommit records the commit of a revision. It comes last, so that every revision in the cache is complete.
func (c cache) setCommit(revision, commit string) error {
	if isCommit(revision) {
		return nil
	}
	return c.replace(c.refPath(revision), func(temporary string) error {
		return c.root.WriteFile(temporary, []byte(commit), 0o666)
	})
}

func (c cache) has(commit, file string) (bool, error) { return c.isFile(c.filePath(commit, file)) }

// lacks reports whether it is known that a commit has no such file.
func (c cache) lacks(commit, file string) (bool, error) { return c.isFile(c.absentPath(commit, file)) }

// isFile reports whether a path leads to a regular file. A link out of the cache is an error.
func (c cache) isFile(name string) (bool, error) {
	info, err := c.root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%w; delete %s", err, filepath.Join(c.root.Name(), name))
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is not a file; delete it", filepath.Join(c.root.Name(), name))
	}
	return true, nil
}

func (c cache) setAbsent(commit, file string) error {
	name := c.absentPath(commit, file)
	if err := c.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	return c.root.WriteFile(name, nil, 0o666)
}

func (c cache) link(commit, file string, d digest) error {
	name := c.filePath(commit, file)
	target, err := filepath.Rel(path.Dir(name), c.blobPath(d))
	if err != nil {
		return err
	}
	return c.replace(name, func(temporary string) error { return c.root.Symlink(target, temporary) })
}

// replace creates a file under a temporary name and renames it, so that nobody sees a partial file.
func (c cache) replace(name string, create func(temporary string) error) error {
	if err := c.root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	temporary := fmt.Sprintf("%s.%08x.tmp", name, rand.Uint32()) //nolint:gosec // it only has to differ from the others
	if err := create(temporary); err != nil {
		_ = c.root.Remove(temporary) // a part of it may be there, on a full disk
		return err
	}
	if err := c.root.Rename(temporary, name); err != nil {
		return errors.Join(err, c.root.Remove(temporary))
	}
	return nil
}

// lock waits for the lock of a blob, which keeps other processes with the same cache, Python's too, from fetching it.
func (c cache) lock(ctx context.Context, d digest) (unlock func() error, err error) {
	dir := path.Join(".locks", c.repo)
	if err := c.root.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(c.root.Name(), dir, string(d)+".lock"))
	if _, err := l.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return nil, fmt.Errorf("waiting for another download of the same file: %w", err)
	}
	return l.Close, nil
}
