//go:build !linux

package cpu

import "unsafe"

// preferHuge does nothing: other systems choose the size of pages themselves.
func preferHuge(unsafe.Pointer, int) {}
