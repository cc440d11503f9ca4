// Package stable changes files so that they survive the end of the process and of the machine: files that are replaced
// as a whole, folders whose names are synced, and locks that tell who holds them.
package stable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// TempPrefix marks files that are not yet, or no longer, there. Whoever opens a folder removes them.
const TempPrefix = ".tmp-"

// Disk makes every change of files. The zero value is ready.
type Disk struct {
	// Private makes files and folders that only the user of this process reads.
	Private bool
	// Guard, if set, is called before each change, and its error prevents the change.
	Guard func() error
	// Hook, if set, is called for each change instead of do; tests inject faults with it.
	Hook func(op, path string, do func() error) error
}

// Mode returns the mode of a file or folder, which is mode unless the disk is private.
func (d Disk) Mode(mode fs.FileMode) fs.FileMode {
	if d.Private {
		return mode & 0o700
	}
	return mode
}

// Do makes one change of a file or folder.
func (d Disk) Do(op, path string, do func() error) error {
	if d.Guard != nil {
		if err := d.Guard(); err != nil {
			return err
		}
	}
	if d.Hook == nil {
		return do()
	}
	return d.Hook(op, path, do)
}

// Replace writes a file so that its path holds either the old content or the new one, whenever the process or the
// machine stops. After an error it may hold either.
func (d Disk) Replace(path string, content []byte) error { return d.ReplaceWith(path, whole(content)) }

// ReplaceWith is [Disk.Replace] with the content that a function writes.
func (d Disk) ReplaceWith(path string, content func(io.Writer) error) error {
	temp := filepath.Join(filepath.Dir(path), TempPrefix+filepath.Base(path))
	err := d.write(temp, os.O_TRUNC, content)
	if err == nil {
		err = d.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, d.RemoveAll(temp))
	}
	return d.SyncDir(filepath.Dir(path))
}

// Append adds to the end of a file that exists, durably. After an error, a part of content may be there.
func (d Disk) Append(path string, content []byte) error { return d.Write(path, os.O_APPEND, content) }

// Write opens a file with the further flag, writes and fsyncs it.
func (d Disk) Write(path string, flag int, content []byte) error {
	return d.write(path, flag, whole(content))
}

// whole writes a content at once.
func whole(content []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}
}

func (d Disk) write(path string, flag int, content func(io.Writer) error) error {
	var f *os.File
	err := d.Do("create", path, func() (err error) {
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|flag, d.Mode(0o644))
		return err
	})
	if err != nil {
		return err
	}
	defer f.Close()
	if err := d.Do("write", path, func() error { return content(f) }); err != nil {
		return err
	}
	if err := d.Do("sync", path, f.Sync); err != nil {
		return err
	}
	return f.Close()
}

// Truncate cuts a file.
func (d Disk) Truncate(path string, size int64) error {
	return d.Do("truncate", path, func() error { return os.Truncate(path, size) })
}

// Rename moves a file or folder within its folder. The caller fsyncs the folder.
func (d Disk) Rename(from, to string) error {
	return d.Do("rename", to, func() error { return rename(from, to) })
}

// RemoveAll removes a file or folder. It is not an error if there is none.
func (d Disk) RemoveAll(path string) error {
	return d.Do("remove", path, func() error { return os.RemoveAll(path) })
}

// SyncDir makes the names in a folder durable.
func (d Disk) SyncDir(path string) error {
	return d.Do("syncdir", path, func() error { return syncNames(path) })
}

// SyncFile makes the content of a file durable that the caller of Commit wrote.
func (d Disk) SyncFile(path string) error {
	return d.Do("sync", path, func() error { return syncContent(path) })
}

// Mkdir makes a folder durably. It is no error if there is one, and one if the folder above is missing.
func (d Disk) Mkdir(path string) error {
	err := d.Do("mkdir", path, func() error { return os.Mkdir(path, d.Mode(0o755)) })
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.SyncDir(filepath.Dir(path))
}

// MkdirAll makes a folder and those above it, each durably.
func (d Disk) MkdirAll(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: path, Err: fs.ErrExist}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return d.Mkdir(path) // which another process may have created meanwhile
}

// NoSync is a disk that waits for nothing: for tests.
var NoSync = Disk{Hook: func(op, _ string, do func() error) error {
	if op == "sync" || op == "syncdir" {
		return nil
	}
	return do()
}}
