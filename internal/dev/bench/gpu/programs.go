package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// cacheEnv names the folder where XLA's programs are kept, for the package that loads the plug-in.
const cacheEnv = "ART_XLA_CACHE"

// keepPrograms gives a job a folder of its own in that of ART_XLA_CACHE, if it is set, before a device is opened. kept
// returns how many of so many programs were read from there, where an earlier run of the job has left them, and not
// compiled.
func keepPrograms(job string, o options) (kept func(programs int) int, err error) {
	folder := os.Getenv(cacheEnv)
	if folder == "" {
		return func(int) int { return 0 }, nil
	}
	name := fmt.Sprintln(o.shape, job, o.batch, o.tokens, o.steps, o.recompute, o.weights, o.cache, o.name, o.devices)
	name = strings.NewReplacer("/", "-", `\`, "-", ":", "-", " ", "_", "\n", "").Replace(name)
	folder = filepath.Join(folder, name)
	before := stored(folder)
	return func(programs int) int {
		return max(0, min(before, programs-(stored(folder)-before)))
	}, os.Setenv(cacheEnv, folder)
}

// stored counts the programs in a folder.
func stored(folder string) (n int) {
	files, _ := os.ReadDir(folder) // there is none before the first run
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".pjrt") {
			n++
		}
	}
	return n
}
