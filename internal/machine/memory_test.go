package machine

import (
	"math"
	"testing"
)

// TestFree: the least of the machine, the cgroups of both versions, and Go's limit; pages of files count as free.
func TestFree(t *testing.T) {
	const mem = "MemTotal: 1000 kB\nMemAvailable: 800 kB\n"
	v1, v2 := "sys/fs/cgroup/memory/a/b/", "sys/fs/cgroup/a/b/"
	none := [2]int64{math.MaxInt64, 0}
	for name, c := range map[string]struct {
		files map[string]string
		limit [2]int64 // Go's, and what is used of it
		want  int64    // KiB; -1 is not known
	}{
		"nothing is known":  {nil, none, -1},
		"Go's limit alone":  {nil, [2]int64{300 << 10, 100 << 10}, 200},
		"machine":           {map[string]string{"proc/meminfo": mem}, none, 800},
		"Go's limit":        {map[string]string{"proc/meminfo": mem}, [2]int64{300 << 10, 100 << 10}, 200},
		"Go is above it":    {map[string]string{"proc/meminfo": mem}, [2]int64{1, 100 << 10}, 0},
		"no limits":         {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n", v2 + "memory.max": "max\n"}, none, 800},
		"version 2":         {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n", v2 + "memory.max": "524288\n", v2 + "memory.current": "262144\n"}, none, 256},
		"pages of files":    {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n", v2 + "memory.max": "524288\n", v2 + "memory.current": "262144\n", v2 + "memory.stat": "anon 1\ninactive_file 102400\nactive_file 1024\n"}, none, 256 + 101},
		"used up":           {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n", v2 + "memory.max": "1024\n", v2 + "memory.current": "4096\n"}, none, 0},
		"parent is fuller":  {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n", v2 + "memory.max": "102400\n", "sys/fs/cgroup/a/memory.max": "204800\n", "sys/fs/cgroup/a/memory.current": "194560\n"}, none, 10},
		"in a container":    {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/memory.max": "102400\n"}, none, 100},
		"version 1":         {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "4:cpu,memory:/a/b\n0::/\n", v1 + "memory.limit_in_bytes": "524288\n", v1 + "memory.usage_in_bytes": "262144\n", v1 + "memory.stat": "inactive_file 7\ntotal_inactive_file 2048\n"}, none, 258},
		"version 1, none":   {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "4:memory:/a/b\n", v1 + "memory.limit_in_bytes": "9223372036854771712\n"}, none, 800},
		"above the machine": {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n", v2 + "memory.max": "1073741824\n"}, none, 800},
	} {
		old := goLimit
		goLimit = func() (int64, int64) { return c.limit[0], c.limit[1] }
		bytes, known := Free(system(c.files))
		goLimit = old
		if c.want < 0 && known || c.want >= 0 && (!known || bytes != c.want<<10) {
			t.Errorf("%s: %d bytes, known %v; want %d KiB", name, bytes, known, c.want)
		}
	}
}

// TestFree_Used: what Go uses counts against its limit.
func TestFree_Used(t *testing.T) {
	_, before := goLimit()
	held := make([]byte, 64<<20)
	_, after := goLimit()
	if held[0] = 1; after-before < 32<<20 {
		t.Errorf("64 MiB more are used: %d before, %d after", before, after)
	}
}
