//go:build !windows

package stable

import "os"

// syncContent makes the content of a file durable.
func syncContent(path string) error { return fsync(path) }

// syncNames makes the names in a folder durable.
func syncNames(dir string) error { return fsync(dir) }

func fsync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// rename moves a file or folder. A file replaces another one.
func rename(from, to string) error { return os.Rename(from, to) }
