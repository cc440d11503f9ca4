package main

import (
	"os"
	"syscall"
)

// peak is the most that a process had in memory, in bytes.
func peak(p *os.ProcessState) int64 { return p.SysUsage().(*syscall.Rusage).Maxrss * 1024 }
