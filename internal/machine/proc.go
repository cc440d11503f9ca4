package machine

import (
	"strconv"
	"strings"
)

// field returns the value of the first line "name: value" of a text.
func field(text, name string) (string, bool) {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// cpuName returns the name of the CPU from /proc/cpuinfo; "" when unknown. On ARM it is the board, or nothing.
func cpuName(cpuinfo string) string {
	for _, name := range []string{"model name", "Model", "Hardware"} {
		if value, _ := field(cpuinfo, name); value != "" {
			return value
		}
	}
	return ""
}

// cacheBytes returns the size of the largest cache from /proc/cpuinfo; 0 when unknown.
func cacheBytes(cpuinfo string) int64 {
	value, _ := field(cpuinfo, "cache size")
	return kilobytes(strings.TrimSuffix(value, "KB"))
}

// memoryBytes returns a number of /proc/meminfo, such as MemTotal; 0 when it is missing.
func memoryBytes(meminfo, name string) int64 {
	value, _ := field(meminfo, name)
	return kilobytes(strings.TrimSuffix(value, "kB"))
}

// kilobytes returns the number of bytes, 0 for what is not a size.
func kilobytes(number string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 0
	}
	return n << 10
}
