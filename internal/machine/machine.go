// Package machine describes this machine and what the cgroups of the process allow: processor, cores, free memory,
// GPUs.
package machine

import "io/fs"

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
		CPU: cpuName(cpuinfo), Cache: cacheBytes(cpuinfo), Cores: leastLimit(v2Levels(fsys), func(dir string) float64 {
			return cpuMax(readText(fsys, dir+"/cpu.max"))
		}),
		Memory: readMemory(fsys),
	}
}

// readText returns a file; "" when there is none, as on other systems than Linux.
func readText(fsys fs.FS, name string) string {
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return ""
	}
	return string(text)
}
