package main

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/internal/quantity"
)

// platform describes the machine and what the process may use of it. What is not known is left out.
type platform struct {
	GoVersion       string   `json:"go_version"`
	OS              string   `json:"os"`
	Arch            string   `json:"arch"`
	CPU             string   `json:"cpu_name,omitempty"`
	Instructions    string   `json:"instructions"` // those in use; empty when the environment names an unknown set
	Available       []string `json:"instructions_available"`
	Chosen          string   `json:"art_cpu,omitempty"` // the environment variable
	Cores           int      `json:"cores"`             // that the process may use
	Workers         int      `json:"workers"`           // GOMAXPROCS: that a device uses
	CgroupCores     float64  `json:"cgroup_cores,omitempty"`
	MemoryTotal     int64    `json:"memory_total_bytes,omitempty"`
	MemoryAvailable int64    `json:"memory_available_bytes,omitempty"`
	CgroupMemory    int64    `json:"cgroup_memory_bytes,omitempty"`

	facts   machine.Facts
	problem error // why no device can be opened
}

// inspectPlatform describes this machine. fsys is its file system.
func inspectPlatform(fsys fs.FS) platform {
	facts := machine.Inspect(fsys)
	m := platform{
		GoVersion: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: facts.CPU,
		Chosen: os.Getenv(cpu.InstructionsEnv), Cores: runtime.NumCPU(), Workers: runtime.GOMAXPROCS(0),
		MemoryTotal: facts.Total, MemoryAvailable: facts.Available, CgroupMemory: facts.Limit,
		facts: facts,
	}
	m.Instructions, m.Available, m.problem = cpu.Instructions()
	if facts.Cores < float64(m.Cores) {
		m.CgroupCores = facts.Cores
	}
	return m
}

func (m platform) instructionsText() string {
	text := m.Instructions
	if text == "" {
		text = "none"
	}
	text += " of " + strings.Join(m.Available, ", ")
	if m.Chosen != "" {
		text += "; ART_CPU=" + m.Chosen
	}
	return text
}

func (m platform) coresLine() string {
	text := fmt.Sprintf("%d, %s", m.Cores, quantity.Of(m.Workers, "worker"))
	if m.CgroupCores > 0 {
		text += fmt.Sprintf("; the cgroup allows %.4g", m.CgroupCores)
	}
	return text
}

func (m platform) memoryLine() string {
	text := fmt.Sprintf("%s, %s available", bytesText(m.MemoryTotal), bytesText(m.MemoryAvailable))
	if m.CgroupMemory > 0 {
		text += fmt.Sprintf("; the cgroup allows %s", bytesText(m.CgroupMemory))
	}
	return text
}
