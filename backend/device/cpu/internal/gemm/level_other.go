//go:build !amd64 && !arm64

package gemm

import "github.com/goart-dev/art/backend/device/cpu/internal/cpuid"

func assembly(cpuid.Level) *level { return nil }
