//go:build unix

package server

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time of the process, which other processes affect less than the wall clock.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
