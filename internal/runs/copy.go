package runs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// CopyCheckpoint returns what [Run.Commit] writes when a step is the same as that in the folder of another checkpoint,
// of this run or another one, without some of its files. Files become hard links where the file system has them, so
// that weights that did not change take no more room; files of a checkpoint are never written again.
func CopyCheckpoint(from string, without ...string) func(dir string) error {
	return func(dir string) error {
		return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
			name, relErr := filepath.Rel(from, path)
			switch {
			case err != nil || relErr != nil:
				return errors.Join(err, relErr)
			case name == ".":
				return nil
			case slices.Contains([]string{modelName, manifestName, UpdateFile}, name) || slices.Contains(without, name):
				return nil // the former are written with each commit, or about the update to that step
			case entry.IsDir():
				return os.Mkdir(filepath.Join(dir, name), 0o755)
			}
			return linkOrCopy(path, filepath.Join(dir, name))
		})
	}
}

// linkOrCopy makes a hard link, or a copy where that is not possible.
func linkOrCopy(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
