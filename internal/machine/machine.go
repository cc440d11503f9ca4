// Package machine describes this machine and what the cgroups of the process allow: processor, cores, free memory,
// GPUs.
package machine

import (
	"io/fs"
	"strconv"
	"strings"
)

// Facts are what the system reports. What is unknown is zero.
type Facts struct {
	CPU   string  // name of the processor
	Cache int64   // bytes of the largest cache
	Cores float64 // that the cgroups allow; 0 when there is no limit
	Memory
}

// Inspect returns the facts of this machine. fsys is its file system, os.DirFS("/").
func Inspect(fsys fs.FS) Facts {
	cpuinfo := readText(fsys, "proc/cpuinfo")
	return Facts{
		CPU: cpuName(cpuinfo), Cache: cacheBytes(cpuinfo), Cores: leastLimit(levels(fsys, ""), func(dir string) float64 {
			return cpuMax(readText(fsys, dir+"/cpu.max"))
		}),
		Memory: readMemory(fsys),
	}
}

// readText returns a file; "" when there is none, as on other systems than Linux.
func readText(fsys fs.FS, name string) string {
	text, _ := fs.ReadFile(fsys, name)
	return string(text)
}

// field returns the value of the first line "name: value" of a text, "" without one.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// cpuName returns the name of the CPU from /proc/cpuinfo; "" when unknown. On ARM it is the board, or nothing.
func cpuName(cpuinfo string) string {
	for _, name := range []string{"model name", "Model", "Hardware"} {
		if value := field(cpuinfo, name); value != "" {
			return value
		}
	}
	return ""
}

// cacheBytes returns the size of the largest cache from /proc/cpuinfo; 0 when unknown.
func cacheBytes(cpuinfo string) int64 { return kilobytes(field(cpuinfo, "cache size"), "KB") }

// memoryBytes returns a number of /proc/meminfo, such as MemTotal; 0 when it is missing.
func memoryBytes(meminfo, name string) int64 { return kilobytes(field(meminfo, name), "kB") }

// kilobytes returns the number of bytes, 0 for what is not a size.
func kilobytes(text, unit string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(text, unit)), 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 0
	}
	return n << 10
}

// Resident is the memory of this process that is in RAM, and the most that ever was, in bytes. known is false on other
// systems than Linux.
func Resident(fsys fs.FS) (now, peak int64, known bool) {
	status := readText(fsys, "proc/self/status")
	now, peak = memoryBytes(status, "VmRSS"), memoryBytes(status, "VmHWM")
	return now, peak, now > 0 && peak > 0
}
