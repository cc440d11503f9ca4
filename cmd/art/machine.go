package main

import (
	"io/fs"
	"os"
	"runtime"

	"github.com/goart-dev/art/backend/device/cpu"
	probe "github.com/goart-dev/art/internal/machine"
)

// machine is what does not have to be measured. What is not known is left out.
type machine struct {
	GoVersion       string   `json:"go_version"`
	OS              string   `json:"os"`
	Arch            string   `json:"arch"`
	CPU             string   `json:"cpu_name,omitempty"`
	Instructions    string   `json:"instructions"` // those in use; empty when the environment asks for what there is not
	Available       []string `json:"instructions_available"`
	Chosen          string   `json:"art_cpu,omitempty"` // the environment variable
	Cores           int      `json:"cores"`             // that the process may use
	Workers         int      `json:"workers"`           // GOMAXPROCS: that a device uses
	CgroupCores     float64  `json:"cgroup_cores,omitempty"`
	MemoryTotal     int64    `json:"memory_total_bytes,omitempty"`
	MemoryAvailable int64    `json:"memory_available_bytes,omitempty"`
	CgroupMemory    int64    `json:"cgroup_memory_bytes,omitempty"`

	cache   int64 // bytes of the largest cache; 0 when not known
	problem error // why no device can be opened
}

// inspect returns the facts of this machine. fsys is its file system.
func inspect(fsys fs.FS) machine {
	facts := probe.Inspect(fsys)
	m := machine{
		GoVersion: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: facts.CPU,
		Chosen: os.Getenv(cpu.InstructionsEnv), Cores: runtime.NumCPU(), Workers: runtime.GOMAXPROCS(0),
		MemoryTotal: facts.Total, MemoryAvailable: facts.Available, CgroupMemory: facts.Limit,
		cache: facts.Cache,
	}
	m.Instructions, m.Available, m.problem = cpu.Instructions()
	if facts.Cores < float64(m.Cores) {
		m.CgroupCores = facts.Cores
	}
	return m
}
