//go:build amd64 || arm64

package pool

// pause lets the processor wait so many rounds, at least one. Meanwhile the other thread of the core has it for itself.
func pause(n int)
