package machine

import (
	"strings"
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
	for name, want := range map[string]int64{"MemTotal": 24684084 << 10, "MemAvailable": 23763512 << 10, "SwapTotal": 0,
		"Mem": 0} {
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
	for text, want := range map[string]int64{"1073741824\n": 1 << 30, "max\n": 0, "": 0, "-1": 0,
		"9223372036854771712\n": 0} {
		if got := byteCount(text); got != want {
			t.Errorf("memory.max %q is %v, want %v", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"0::/\n": "", "0::/a/b\n": "a/b", "4:memory:/x\n0::/y\n": "y", "0::/../../z\n": "z",
	} {
		if got, ok := cgroupPath(text, ""); !ok || got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if _, ok := cgroupPath("4:memory:/x\n", ""); ok {
		t.Error("version 1 has a path in version 2")
	}
	for text, want := range map[string]string{"4:cpu,memory:/x/y\n0::/z\n": "x/y", "0::/z\n4:memory:/\n": ""} {
		if got, ok := cgroupPath(text, "memory"); !ok || got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
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
		if got := leastLimit(levels(fsys, ""), func(
			dir string,
		) float64 {
			return cpuMax(readText(fsys, dir+"/"+file))
		}); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}

// FuzzProc: no text causes a panic, or a negative size.
func FuzzProc(f *testing.F) {
	for _, text := range []string{intel, raspberry, graviton, meminfo, "0::/a\n", "150000 100000", "max",
		"cache size: 9223372036854775807 KB", ":", "\xff: \xff"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if name := cpuName(text); strings.ContainsAny(name, "\n") {
			t.Errorf("the name %q", name)
		}
		if c, m := cacheBytes(text), memoryBytes(text, "MemTotal"); c < 0 || m < 0 {
			t.Errorf("%d and %d bytes", c, m)
		}
		if c, m := cpuMax(text), byteCount(text)+statBytes(text, "active_file"); c < 0 || m < 0 {
			t.Errorf("limits %v and %v", c, m)
		}
		fsys := system(map[string]string{"proc/self/cgroup": text})
		if facts := Inspect(fsys); facts.Cores != 0 || facts.Limit != 0 {
			t.Errorf("%+v, from nothing", facts)
		}
	})
}
