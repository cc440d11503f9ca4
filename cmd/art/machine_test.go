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

func TestInspect(t *testing.T) {
	m := inspect(system(map[string]string{
		"proc/cpuinfo": intel, "proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
		"sys/fs/cgroup/cpu.max": "50000 100000\n", "sys/fs/cgroup/memory.max": "1073741824\n",
	}))
	if m.CPU != "Intel(R) Xeon(R) Processor" || m.MemoryTotal != 24684084<<10 || m.CgroupCores != 0.5 ||
		m.CgroupMemory != 1<<30 {
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
