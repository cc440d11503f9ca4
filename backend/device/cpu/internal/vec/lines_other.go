//go:build !amd64

package vec

import "unsafe"

func copyLines(_, _ unsafe.Pointer, _, _, _ int) {}

func copiesLines(Level) bool { return false }
