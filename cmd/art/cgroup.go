package main

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// cgroupPath returns the group of the process from /proc/self/cgroup, relative to where version 2 is mounted.
func cgroupPath(text string) (string, bool) {
	for line := range strings.Lines(text) {
		if group, ok := strings.CutPrefix(strings.TrimSpace(line), "0::/"); ok {
			return path.Clean("/" + group)[1:], true
		}
	}
	return "", false
}

// cpuMax returns the cores that a cpu.max file allows, "quota period" in microseconds; 0 when there is no limit.
func cpuMax(text string) float64 {
	words := strings.Fields(text)
	if len(words) != 2 {
		return 0
	}
	quota, err1 := strconv.ParseInt(words[0], 10, 64)
	period, err2 := strconv.ParseInt(words[1], 10, 64)
	if err1 != nil || err2 != nil || quota <= 0 || period <= 0 {
		return 0
	}
	return float64(quota) / float64(period)
}

// memoryMax returns the bytes that a memory.max file allows; 0 when there is no limit.
func memoryMax(text string) float64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 {
		return 0
	}
	return float64(n)
}

// cgroupLimit returns the least limit in the files of that name, from the group of the process up to the root: each of
// them holds. It is 0 when there is none.
func cgroupLimit(fsys fs.FS, file string, parse func(string) float64) float64 {
	group, ok := cgroupPath(readText(fsys, "proc/self/cgroup"))
	if !ok {
		return 0
	}
	least := math.Inf(1)
	for {
		if limit := parse(readText(fsys, path.Join("sys/fs/cgroup", group, file))); limit > 0 {
			least = min(least, limit)
		}
		if group == "" || group == "." {
			break
		}
		group = path.Dir(group)
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// readText returns a file; "" when there is none, as on other systems than linux.
func readText(fsys fs.FS, name string) string {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return ""
	}
	return string(text)
}
