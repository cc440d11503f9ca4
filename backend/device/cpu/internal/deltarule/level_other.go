//go:build !amd64 && !arm64

package deltarule

import "github.com/goart-dev/art/backend/device/cpu/internal/cpuid"

var assembly map[cpuid.Level]*kernels
