//go:build !windows

package stable

// holderFile returns the file with the id of the process that holds a lock: the lock itself.
func holderFile(lock string) string { return lock }
