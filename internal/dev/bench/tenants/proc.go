package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art/backend/server/child"
)

// tick is the unit of processor times in /proc on all Linux systems that Go runs on.
const tick = 10 * time.Millisecond

// processorTime is what this process, and a server if there is one, have used.
func processorTime(s *child.Server) (time.Duration, error) {
	own, err := processorTimeOf(os.Getpid())
	if err != nil || s == nil {
		return own, err
	}
	servers, err := processorTimeOf(s.PID)
	return own + servers, err
}

// processorTimeOf adds up the times of a process in user mode and in the kernel: fields 14 and 15 of proc(5)'s stat.
func processorTimeOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name of the program may have spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields after the name", pid, len(fields))
	}
	user, errUser := strconv.ParseInt(fields[11], 10, 64)
	kernel, errKernel := strconv.ParseInt(fields[12], 10, 64)
	if errUser != nil || errKernel != nil {
		return 0, fmt.Errorf("/proc/%d/stat: times %q and %q", pid, fields[11], fields[12])
	}
	return time.Duration(user+kernel) * tick, nil
}

var peak = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// peakMemory is the most bytes of a process that were ever resident.
func peakMemory(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	found := peak.FindSubmatch(status)
	if found == nil {
		return 0, fmt.Errorf("/proc/%d/status has no VmHWM", pid)
	}
	kB, err := strconv.ParseInt(string(found[1]), 10, 64)
	return kB * 1024, err
}
