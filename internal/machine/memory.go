package machine

import (
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"runtime/metrics"
)

// Memory is in bytes. What is unknown is 0.
type Memory struct {
	Total     int64 // of the machine
	Available int64 // that the system could give without swapping
	Limit     int64 // the lowest limit of the cgroups, versions 1 and 2; 0 when there is none
	Left      int64 // if there is a Limit: what the fullest group can still take
}

// goLimit returns Go's soft limit (GOMEMLIMIT) and what counts against it now. Tests replace it.
var goLimit = func() (limit, used int64) {
	limit = debug.SetMemoryLimit(-1)
	samples := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	return limit, int64(samples[0].Value.Uint64() - samples[1].Value.Uint64() - samples[2].Value.Uint64())
}

// Free returns the bytes that this process can still take: the least of
//
//	what the system can give without swapping (MemAvailable on Linux, half of all memory on macOS),
//	limit - (usage - pages of files)  of each cgroup, for pages of files can be dropped,
//	GOMEMLIMIT - what Go uses of it.
//
// known is false where the system reports nothing and there is no limit: on other systems than Linux and macOS.
func Free(fsys fs.FS) (bytes int64, known bool) {
	m := readMemory(fsys)
	bytes = math.MaxInt64
	if m.Total > 0 {
		bytes = m.Available
	}
	if m.Limit > 0 {
		bytes = min(bytes, m.Left)
	}
	if limit, used := goLimit(); limit < math.MaxInt64 {
		bytes = min(bytes, max(0, limit-used))
	}
	return bytes, bytes < math.MaxInt64
}

// readMemory returns what the system reports.
func readMemory(fsys fs.FS) Memory {
	meminfo := readText(fsys, "proc/meminfo")
	m := Memory{Total: memoryBytes(meminfo, "MemTotal"), Available: memoryBytes(meminfo, "MemAvailable")}
	if meminfo == "" {
		m.Total = systemMemory()
		m.Available = m.Total / 2
	}
	for _, g := range []struct {
		dirs         []string
		limit, usage string
		pages        []string // that can be dropped
	}{
		{levels(fsys, ""), "memory.max", "memory.current", []string{"inactive_file", "active_file"}},
		{levels(fsys, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes",
			[]string{"total_inactive_file", "total_active_file"}},
	} {
		for _, dir := range g.dirs {
			limit := byteCount(readText(fsys, path.Join(dir, g.limit)))
			if limit == 0 || m.Total > 0 && limit >= m.Total {
				continue
			}
			used := byteCount(readText(fsys, path.Join(dir, g.usage)))
			for _, name := range g.pages {
				used -= statBytes(readText(fsys, path.Join(dir, "memory.stat")), name)
			}
			left := max(0, limit-max(0, used))
			if m.Limit == 0 {
				m.Limit, m.Left = limit, left
				continue
			}
			m.Limit, m.Left = min(m.Limit, limit), min(m.Left, left)
		}
	}
	return m
}
