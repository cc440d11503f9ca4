//go:build !amd64

package vec

import "unsafe"

func copyLines(_, _ unsafe.Pointer, _ int, _ *Plane) {}

func copiesLines(Level) bool { return false }
