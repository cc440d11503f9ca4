package machine

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// cgroupPath returns the group of the process from /proc/self/cgroup, relative to where its hierarchy is mounted: that
// of a controller of version 1, or of version 2, whose controller is "".
func cgroupPath(text, controller string) (string, bool) {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number, controllers, path
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") || (parts[0] == "0") != (controller == "") {
			continue
		}
		if slices.Contains(strings.Split(parts[1], ","), controller) {
			return path.Clean(parts[2])[1:], true
		}
	}
	return "", false
}

// levels returns the folders of the process's group and of all above it, up to the root: the limits of each hold. The
// controller is one of version 1, or "" for version 2. In a container the root may be the group itself, and the folders
// below, which have their names outside of the container, are missing.
func levels(fsys fs.FS, controller string) []string {
	root := path.Join("sys/fs/cgroup", controller)
	group, ok := cgroupPath(readText(fsys, "proc/self/cgroup"), controller)
	if !ok {
		return nil
	}
	var dirs []string
	for ; group != "" && group != "."; group = path.Dir(group) {
		dirs = append(dirs, path.Join(root, group))
	}
	return append(dirs, root)
}

// leastLimit returns the least limit of some folders; 0 when there is none.
func leastLimit(dirs []string, limit func(dir string) float64) (least float64) {
	for _, dir := range dirs {
		if n := limit(dir); n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// cpuMax returns the cores that a cpu.max file allows, "quota period" in microseconds; 0 when there is no limit.
func cpuMax(text string) float64 {
	words := strings.Fields(text)
	if len(words) != 2 {
		return 0
	}
	quota, err1 := strconv.ParseInt(words[0], 10, 64)
	period, err2 := strconv.ParseInt(words[1], 10, 64)
	if err1 != nil || err2 != nil || quota <= 0 || period <= 0 {
		return 0
	}
	return float64(quota) / float64(period)
}

// noLimit is the least number that means no limit: version 1 writes the largest one that fits, in whole pages.
const noLimit = 1 << 60

// byteCount returns the number in a file such as memory.max; 0 when there is none, or it means no limit.
func byteCount(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n >= noLimit {
		return 0
	}
	return n
}

// statBytes returns a number of a memory.stat file, whose lines are "name number".
func statBytes(text, name string) int64 {
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) == 2 && words[0] == name {
			return byteCount(words[1])
		}
	}
	return 0
}
