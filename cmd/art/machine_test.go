package main

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"
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
	raspberry = `processor	: 0
BogoMIPS	: 108.00
Features	: fp asimd evtstrm crc32 cpuid
CPU implementer	: 0x41
CPU part	: 0xd08

Hardware	: BCM2835
Model		: Raspberry Pi 4 Model B Rev 1.4
`
	graviton = "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd\nCPU part\t: 0xd0c\n"

	meminfo = `MemTotal:       24684084 kB
MemFree:        17895504 kB
MemAvailable:   23763512 kB
Buffers:           68444 kB
HugePages_Total:       0
`
)

func TestCPUInfo(t *testing.T) {
	for _, c := range []struct {
		text, name string
		cache      int64
	}{
		{intel, "Intel(R) Xeon(R) Processor", 266240 << 10},
		{raspberry, "Raspberry Pi 4 Model B Rev 1.4", 0},
		{graviton, "", 0},
		{"", "", 0},
		{"cache size : -5 KB", "", 0},
	} {
		if name, cache := cpuName(c.text), cacheBytes(c.text); name != c.name || cache != c.cache {
			t.Errorf("%q, %d; want %q, %d", name, cache, c.name, c.cache)
		}
	}
}

func TestMemInfo(t *testing.T) {
	for name, want := range map[string]int64{"MemTotal": 24684084 << 10, "MemAvailable": 23763512 << 10, "SwapTotal": 0, "Mem": 0} {
		if got := memoryBytes(meminfo, name); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

func TestCgroup_Parse(t *testing.T) {
	for text, want := range map[string]float64{
		"150000 100000\n": 1.5, "max 100000\n": 0, "50000 100000": 0.5, "": 0, "1": 0, "-1 100000": 0, "1 0": 0, "1 2 3": 0,
	} {
		if got := cpuMax(text); got != want {
			t.Errorf("cpu.max %q is %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]float64{"1073741824\n": 1 << 30, "max\n": 0, "": 0, "-1": 0} {
		if got := memoryMax(text); got != want {
			t.Errorf("memory.max %q is %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"0::/\n": "", "0::/a/b\n": "a/b", "4:memory:/x\n0::/y\n": "y", "0::/../../z\n": "z",
	} {
		if got, ok := cgroupPath(text); !ok || got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if _, ok := cgroupPath("4:memory:/x\n"); ok {
		t.Error("version 1 has a path")
	}
}

// system is a file system with these files.
func system(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// TestCgroup_LeastOfAll: the limit of a parent holds too.
func TestCgroup_LeastOfAll(t *testing.T) {
	fsys := system(map[string]string{
		"proc/self/cgroup":               "0::/slice/unit\n",
		"sys/fs/cgroup/slice/unit/x":     "300000 100000\n",
		"sys/fs/cgroup/slice/x":          "250000 100000\n",
		"sys/fs/cgroup/slice/unit/y":     "max 100000\n",
		"sys/fs/cgroup/z":                "100000 100000\n",
		"sys/fs/cgroup/slice/other/unit": "1 100000\n",
	})
	for file, want := range map[string]float64{"x": 2.5, "y": 0, "z": 1, "none": 0} {
		if got := cgroupLimit(fsys, file, cpuMax); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}

func TestInspect(t *testing.T) {
	m := inspect(system(map[string]string{
		"proc/cpuinfo": intel, "proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
		"sys/fs/cgroup/cpu.max": "50000 100000\n", "sys/fs/cgroup/memory.max": "1073741824\n",
	}))
	if m.CPU != "Intel(R) Xeon(R) Processor" || m.MemoryTotal != 24684084<<10 || m.CgroupCores != 0.5 || m.CgroupMemory != 1<<30 {
		t.Errorf("%+v", m)
	}
	if got := m.readSize(); got != 1<<28 {
		t.Errorf("reads %d bytes of 1 GiB, want a quarter", got)
	}
	bare := inspect(fstest.MapFS{})
	if bare.CPU != "" || bare.MemoryTotal != 0 || bare.CgroupCores != 0 || bare.Cores < 1 {
		t.Errorf("%+v", bare)
	}
	if got := bare.readSize(); got != 512<<20 {
		t.Errorf("reads %d bytes, want 512 MiB", got)
	}
	plenty := machine{MemoryAvailable: 64 << 30, cache: 266240 << 10}
	if got := plenty.readSize(); got != 4*266240<<10 {
		t.Errorf("reads %d bytes, want four times the cache", got)
	}
}

// good is a machine with nothing wrong.
func good() machine {
	return machine{
		Instructions: "avx512", Available: []string{"portable", "avx2", "avx512"}, Cores: 4, Workers: 4,
		MemoryTotal: 64 << 30, MemoryAvailable: 32 << 30,
	}
}

// TestNotes: each thing that is wrong has one note, and the tables of all fit.
func TestNotes(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(m *machine)
	}{
		{"", func(*machine) {}},
		{"", func(m *machine) { m.CgroupCores, m.Workers = 1.5, 2 }},
		{"", func(m *machine) { m.Instructions, m.Available = "avx2", []string{"portable", "avx2"} }},
		{"avx512, which is faster", func(m *machine) { m.Instructions, m.Chosen = "avx2", "avx2" }},
		{"There is no AVX2", func(m *machine) { m.Instructions, m.Available = "portable", []string{"portable"} }},
		{"unset ART_CPU", func(m *machine) { m.Instructions, m.problem = "", errFull }},
		{"4 workers share 1.5 cores, and wait for one another: set GOMAXPROCS=2", func(m *machine) { m.CgroupCores = 1.5 }},
		{"8 workers share 4 cores", func(m *machine) { m.Workers = 8 }},
		{"1 of 4 cores", func(m *machine) { m.Workers = 1 }},
		{"1000 MiB of memory", func(m *machine) { m.MemoryAvailable = 1000 << 20 }},
		{"at 1.0 GiB", func(m *machine) { m.CgroupMemory = 1 << 30 }},
	} {
		m := good()
		c.change(&m)
		notes := m.notes()
		if c.want == "" && len(notes) > 0 || c.want != "" && (len(notes) != 1 || !strings.Contains(notes[0], c.want)) {
			t.Errorf("want a note with %q, got %q", c.want, notes)
		}
		table := report{machine: m, Notes: notes}.table()
		if strings.Count(table, "\nnote ") != len(notes) {
			t.Errorf("not %d notes in\n%s", len(notes), table)
		}
		checkWidth(t, table)
	}
}

// FuzzProc: no text ends the command, or makes up a size that is negative.
func FuzzProc(f *testing.F) {
	for _, text := range []string{intel, raspberry, graviton, meminfo, "0::/a\n", "150000 100000", "max", "cache size: 9223372036854775807 KB", ":", "\xff: \xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if name := cpuName(text); strings.ContainsAny(name, "\n") {
			t.Errorf("the name %q", name)
		}
		if c, m := cacheBytes(text), memoryBytes(text, "MemTotal"); c < 0 || m < 0 {
			t.Errorf("%d and %d bytes", c, m)
		}
		if c, m := cpuMax(text), memoryMax(text); c < 0 || m < 0 {
			t.Errorf("limits %v and %v", c, m)
		}
		fsys := system(map[string]string{"proc/self/cgroup": text})
		if limit := cgroupLimit(fsys, "cpu.max", cpuMax); limit != 0 {
			t.Errorf("a limit of %v, from nothing", limit)
		}
	})
}

func TestTexts(t *testing.T) {
	for ns, want := range map[int64]string{7: "7 ns", 1500: "1.50 µs", 2_500_000: "2.50 ms", 3_000_000_000: "3.00 s"} {
		if got := durationText(time.Duration(ns)); got != want {
			t.Errorf("%d ns is %q, want %q", ns, got, want)
		}
	}
	if got := wrap("aa bb cc  dddddd e", 5); got != "aa bb\ncc\ndddddd\ne" {
		t.Errorf("%q", got)
	}
}
