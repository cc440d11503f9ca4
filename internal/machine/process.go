package machine

import "io/fs"

// Resident is the memory of this process that is in RAM, and the most that ever was, in bytes. known is false on other
// systems than Linux.
func Resident(fsys fs.FS) (now, peak int64, known bool) {
	status := readText(fsys, "proc/self/status")
	now, peak = memoryBytes(status, "VmRSS"), memoryBytes(status, "VmHWM")
	return now, peak, now > 0 && peak > 0
}
