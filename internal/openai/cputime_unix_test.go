//go:build unix

package openai

import (
	"syscall"
	"time"
)

// cpuTime returns what the process has computed so far. Unlike the time of day it does not depend on what else runs.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
