package machine

import "golang.org/x/sys/unix"

// systemMemory returns the bytes of memory of the machine, 0 when unknown.
func systemMemory() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil || n > noLimit {
		return 0
	}
	return int64(n)
}
