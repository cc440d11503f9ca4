//go:build cgo && !unix

package xla

import "fmt"

// interpose is for systems on which plug-ins are loaded by another call.
func interpose(file, string) error {
	return fmt.Errorf("programs cannot be kept on this system: unset %s", CacheEnv)
}
