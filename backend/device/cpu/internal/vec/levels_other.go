//go:build !amd64 && !arm64

package vec

import "unsafe"

var kernelsOf = [numLevels]*kernels{Portable: &kernelsPortable}

func prefetchLines(unsafe.Pointer, int) {}
