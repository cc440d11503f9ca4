//go:build !linux

package mapped

// Release does nothing: where files are mapped, the system takes pages back when memory is short.
func Release([]byte) {}
