//go:build !darwin

package machine

// systemMemory returns 0: Linux has /proc, and on other systems it is unknown.
func systemMemory() int64 { return 0 }
