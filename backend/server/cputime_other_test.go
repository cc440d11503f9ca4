//go:build !unix

package server

import "time"

var start = time.Now()

// cpuTime returns the wall clock, on systems where the CPU time of the process is not available.
func cpuTime() time.Duration { return time.Since(start) }
