// Package tenancy is what servers of many tenants have in common: who sends a request, and may do what; a locked folder
// of documents, journals of operations, names of files, and errors that tell nothing of the server.
package tenancy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/stable"
)

// Folder keeps the documents of a server, which holds its lock: one JSON file each, KIND/NAME.json.
type Folder struct {
	dir  string
	disk stable.Disk
	lock *stable.Lock
	log  *slog.Logger
}

// OpenFolder opens a folder, with those of its kinds, which it creates if there is none. It is an error that wraps
// [art.ErrLocked], and names the process, when another server holds it. disk is the zero value but for tests.
func OpenFolder(dir string, log *slog.Logger, disk stable.Disk, kinds ...string) (*Folder, error) {
	absolute, err := filepath.Abs(dir) // the working directory may change
	if err != nil {
		return nil, err
	}
	disk.Private = true
	f := &Folder{dir: absolute, disk: disk, log: log}
	if err := f.disk.MkdirAll(f.dir); err != nil {
		return nil, err
	}
	if f.lock, err = stable.TakeLock(f.Path("lock")); err != nil {
		if held := (*stable.HeldError)(nil); errors.As(err, &held) {
			return nil, &art.Error{Op: "open " + dir, Err: art.ErrLocked,
				Hint: held.Error() + "; a folder is of one server: stop that one first, or use another folder"}
		}
		return nil, err
	}
	f.disk.Guard = f.lock.Check
	for _, kind := range append(kinds, "") {
		if err := f.prepare(kind); err != nil {
			return nil, errors.Join(err, f.lock.Close())
		}
	}
	return f, nil
}

// prepare makes the folder of a kind, and removes what an interrupted change has left there.
func (f *Folder) prepare(kind string) error {
	if err := f.disk.MkdirAll(f.Path(kind)); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.Path(kind))
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), stable.TempPrefix) {
			err = errors.Join(err, f.disk.RemoveAll(f.Path(kind, e.Name())))
		}
	}
	return err
}

// Close releases the lock. Nothing is changed afterwards.
func (f *Folder) Close() error { return f.lock.Close() }

// Path is that of a file of the folder.
func (f *Folder) Path(parts ...string) string {
	return filepath.Join(append([]string{f.dir}, parts...)...)
}

// Write replaces a file as a whole, and makes the folders above it.
func (f *Folder) Write(data []byte, parts ...string) error {
	path := f.Path(parts...)
	if err := f.disk.MkdirAll(filepath.Dir(path)); err != nil {
		return err
	}
	return f.disk.Replace(path, data)
}

// WriteJSON replaces a document as a whole.
func (f *Folder) WriteJSON(v any, parts ...string) error {
	data, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return f.Write(data, parts...)
}

// Remove removes a file. It is no error if there is none.
func (f *Folder) Remove(parts ...string) error { return f.disk.RemoveAll(f.Path(parts...)) }

// ReadAll reads all documents of a kind. What cannot be read, or is not what its name says, is set aside.
func ReadAll[T any](f *Folder, kind string, name func(*T) string) (list []*T, err error) {
	entries, err := os.ReadDir(f.Path(kind))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || strings.HasPrefix(base, stable.TempPrefix) {
			continue
		}
		v := new(T)
		err := f.read(v, kind, e.Name())
		if err == nil && name(v) != base {
			err = fmt.Errorf("it is of %.80q", name(v))
		}
		if err != nil {
			f.setAside(err, kind, e.Name())
			continue
		}
		list = append(list, v)
	}
	return list, nil
}

// ReadJSON reads a document into v. It is no error if there is none; one that cannot be read is set aside, and v stays
// what it was.
func ReadJSON[T any](f *Folder, v *T, parts ...string) {
	read := new(T)
	switch err := f.read(read, parts...); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		f.setAside(err, parts...)
	default:
		*v = *read
	}
}

func (f *Folder) read(v any, parts ...string) error {
	data, err := os.ReadFile(f.Path(parts...))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// setAside keeps a damaged file under another name: the server goes on without it.
func (f *Folder) setAside(why error, parts ...string) {
	path := f.Path(parts...)
	aside := path + ".damaged"
	for n := 2; ; n++ {
		if _, err := os.Lstat(aside); err != nil {
			break
		}
		aside = fmt.Sprintf("%s.damaged-%d", path, n)
	}
	err := f.disk.Rename(path, aside)
	if err == nil {
		err = f.disk.SyncDir(filepath.Dir(path))
	}
	f.log.Error("damaged file was set aside, and what it describes is not served; restore it, and start again",
		"file", aside, "damage", why, "error", err)
}

// Locks are mutexes by name: who works on one thing keeps out only those who want the same. The zero value is ready.
type Locks struct {
	mu     sync.Mutex
	byName map[string]*lock
}

// lock is one of them, for as long as somebody holds it or waits for it.
type lock struct {
	sync.Mutex
	users int
}

// Lock locks a name, and returns what unlocks it.
func (l *Locks) Lock(name string) (unlock func()) {
	l.mu.Lock()
	if l.byName == nil {
		l.byName = map[string]*lock{}
	}
	one := l.byName[name]
	if one == nil {
		one = &lock{}
		l.byName[name] = one
	}
	one.users++
	l.mu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(l.byName, name)
		}
	}
}
