package runs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// durable is what of a folder is on disk when the machine stops: of each file the content at its last fsync, of each
// folder the names at its last fsync. It is the least that a file system promises.
type durable struct {
	t     *testing.T
	root  inode
	files map[inode][]byte
	names map[inode]map[string]entry
	pins  map[inode]*os.File // open files, so that no inode is used again
}

type inode uint64

type entry struct {
	inode inode
	dir   bool
}

// watch starts with everything that is in root on disk.
func watch(t *testing.T, root string) *durable {
	d := &durable{t: t, files: map[inode][]byte{}, names: map[inode]map[string]entry{}, pins: map[inode]*os.File{}}
	t.Cleanup(func() {
		for _, f := range d.pins {
			f.Close()
		}
	})
	d.root = d.pin(root)
	require.NoError(t, filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if e.IsDir() {
			d.observe("syncdir", path)
		} else {
			d.observe("sync", path)
		}
		return err
	}))
	return d
}

// observe is called for every change that was made.
func (d *durable) observe(op, path string) {
	switch op {
	case "sync":
		content, err := os.ReadFile(path)
		require.NoError(d.t, err)
		d.files[d.pin(path)] = content
	case "syncdir":
		entries, err := os.ReadDir(path)
		require.NoError(d.t, err)
		names := map[string]entry{}
		for _, e := range entries {
			names[e.Name()] = entry{d.pin(filepath.Join(path, e.Name())), e.IsDir()}
		}
		d.names[d.pin(path)] = names
	}
}

func (d *durable) pin(path string) inode {
	id := inodeOf(d.t, path)
	if d.pins[id] == nil {
		f, err := os.Open(path)
		require.NoError(d.t, err)
		d.pins[id] = f
	}
	return id
}

// restore makes a folder of what is on disk.
func (d *durable) restore(t *testing.T) string {
	root := tempDir(t)
	d.fill(root, d.root)
	return root
}

func (d *durable) fill(dir string, id inode) {
	for name, e := range d.names[id] {
		path := filepath.Join(dir, name)
		if !e.dir {
			require.NoError(d.t, os.WriteFile(path, d.files[e.inode], 0o644))
			continue
		}
		require.NoError(d.t, os.Mkdir(path, 0o755))
		d.fill(path, e.inode)
	}
}
