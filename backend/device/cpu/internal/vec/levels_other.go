//go:build !amd64 && !arm64

package vec

var kernelsOf = [numLevels]*kernels{Portable: &kernelsPortable}
