package runs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// tempPrefix marks files that are not yet, or no longer, part of the run. Open removes them.
const tempPrefix = ".tmp-"

// disk makes every change of the run directory.
type disk struct {
	// guard, if set, is called before each change, and its error prevents the change.
	guard func() error
	// hook, if set, is called for each change instead of do; tests inject faults with it.
	hook func(op, path string, do func() error) error
}

func (d disk) do(op, path string, do func() error) error {
	if d.guard != nil {
		if err := d.guard(); err != nil {
			return err
		}
	}
	if d.hook == nil {
		return do()
	}
	return d.hook(op, path, do)
}

// replace writes a file so that its path holds either the old content or the new one, whenever the process or the
// machine stops. After an error it may hold either.
func (d disk) replace(path string, content []byte) error {
	temp := filepath.Join(filepath.Dir(path), tempPrefix+filepath.Base(path))
	err := d.write(temp, os.O_TRUNC, content)
	if err == nil {
		err = d.rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, d.removeAll(temp))
	}
	return d.syncDir(filepath.Dir(path))
}

// append adds to the end of a file that exists, durably. After an error, a part of content may be there.
func (d disk) append(path string, content []byte) error { return d.write(path, os.O_APPEND, content) }

// write opens a file with the further flag, writes and fsyncs it.
func (d disk) write(path string, flag int, content []byte) error {
	var f *os.File
	err := d.do("create", path, func() (err error) {
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, 0o644)
		return err
	})
	if err != nil {
		return err
	}
	defer f.Close()
	write := func() error {
		_, err := f.Write(content)
		return err
	}
	if err := d.do("write", path, write); err != nil {
		return err
	}
	if err := d.do("sync", path, f.Sync); err != nil {
		return err
	}
	return f.Close()
}

func (d disk) truncate(path string, size int64) error {
	return d.do("truncate", path, func() error { return os.Truncate(path, size) })
}

// rename moves a file or folder within its folder. The caller fsyncs the folder.
func (d disk) rename(from, to string) error {
	return d.do("rename", to, func() error { return rename(from, to) })
}

// removeAll removes a file or folder. It is not an error if there is none.
func (d disk) removeAll(path string) error {
	return d.do("remove", path, func() error { return os.RemoveAll(path) })
}

// syncDir makes the names in a folder durable.
func (d disk) syncDir(path string) error {
	return d.do("syncdir", path, func() error { return syncNames(path) })
}

// syncFile makes the content of a file durable that the caller of Commit wrote.
func (d disk) syncFile(path string) error {
	return d.do("sync", path, func() error { return syncContent(path) })
}

// mkdir makes a folder durably. It is no error if there is one, and one if the folder above is missing.
func (d disk) mkdir(path string) error {
	err := d.do("mkdir", path, func() error { return os.Mkdir(path, 0o755) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

// mkdirAll makes a folder and those above it, each durably.
func (d disk) mkdirAll(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: path, Err: fs.ErrExist}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.mkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return d.mkdir(path) // which another process may have created meanwhile
}
