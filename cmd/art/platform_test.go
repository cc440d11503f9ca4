package main

import (
	"testing"
	"testing/fstest"
)

const (
	intel = `processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 207
model name	: Intel(R) Xeon(R) Processor
stepping	: 2
cache size	: 266240 KB
flags		: fpu vme de avx2

processor	: 1
model name	: Another
cache size	: 1 KB
`
	meminfo = `MemTotal:       24684084 kB
MemFree:        17895504 kB
MemAvailable:   23763512 kB
Buffers:           68444 kB
HugePages_Total:       0
`
)

// system is a file system with these files.
func system(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestInspectPlatform(t *testing.T) {
	m := inspectPlatform(system(map[string]string{
		"proc/cpuinfo": intel, "proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
		"sys/fs/cgroup/cpu.max": "50000 100000\n", "sys/fs/cgroup/memory.max": "1073741824\n",
	}))
	if m.CPU != "Intel(R) Xeon(R) Processor" || m.MemoryTotal != 24684084<<10 || m.CgroupCores != 0.5 ||
		m.CgroupMemory != 1<<30 {
		t.Errorf("%+v", m)
	}
	bare := inspectPlatform(fstest.MapFS{})
	if bare.CPU != "" || bare.MemoryTotal != 0 || bare.CgroupCores != 0 || bare.Cores < 1 {
		t.Errorf("%+v", bare)
	}
}
