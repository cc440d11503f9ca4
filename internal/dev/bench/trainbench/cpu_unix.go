//go:build unix

package trainbench

import (
	"syscall"
	"time"
)

// cpuTime returns the processor time that the process has used, of all cores. It does not count what other programs
// take.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
