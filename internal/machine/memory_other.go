//go:build !darwin

package machine

// systemMemory returns 0: Linux tells in /proc, and of other systems it is not known.
func systemMemory() int64 { return 0 }
