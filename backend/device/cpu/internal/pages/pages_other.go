//go:build !linux

package pages

import "unsafe"

// prefer does nothing: other systems choose the size of pages themselves.
func prefer(unsafe.Pointer, int) {}
