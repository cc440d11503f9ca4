package main

import (
	"fmt"
	"strings"

	"github.com/goart-dev/art/internal/machine"
)

// xlaReport describes XLA for doctor.
type xlaReport struct {
	Plugins []xlaPlugin `json:"plugins"`
	Problem string      `json:"problem,omitempty"` // why there are none
}

// xlaPlugin is a plug-in that was found.
type xlaPlugin struct {
	Device   string   `json:"device"` // as local.Options names it
	Path     string   `json:"path"`   // "" when the machine could use the plug-in and it was not found
	API      string   `json:"pjrt_version,omitempty"`
	Platform string   `json:"platform,omitempty"`
	Version  string   `json:"platform_version,omitempty"` // of the platform: those of CUDA and cuDNN, say
	Devices  []string `json:"devices,omitempty"`
	// Memory is that of each device, or one entry for devices that share it; none where it is not known.
	Memory  []xlaMemory `json:"memory,omitempty"`
	Problem string      `json:"problem,omitempty"` // why it cannot be used
}

// xlaMemory is the memory of a device, in bytes.
type xlaMemory struct {
	Total int64 `json:"total_bytes"`
	Free  int64 `json:"free_bytes"`
}

// addMemory adds what is known of the memory of devices: that of the machine for the CPU, and that of the GPUs for CUDA
// where the plug-in has a device for each of them.
func (r xlaReport) addMemory(m platform, gpus []machine.GPU) {
	for i := range r.Plugins {
		p := &r.Plugins[i]
		switch {
		case p.Problem != "":
		case p.Device == "xla:cpu" && m.MemoryTotal > 0:
			p.Memory = []xlaMemory{{m.MemoryTotal, m.MemoryAvailable}}
		case p.Device == "xla:cuda" && len(gpus) == len(p.Devices):
			for _, g := range gpus {
				p.Memory = append(p.Memory, xlaMemory{g.Total, g.Free})
			}
		}
	}
}

// memoryText lists the memory of devices.
func (p xlaPlugin) memoryText() string {
	if len(p.Memory) == 0 {
		return "memory unknown"
	}
	var list []string
	for _, m := range p.Memory {
		list = append(list, fmt.Sprintf("%s, %s free", bytesText(m.Total), bytesText(m.Free)))
	}
	return "memory " + strings.Join(list, "; ")
}

func (p xlaPlugin) String() string {
	if p.Path == "" {
		return fmt.Sprintf("%s cannot be used: %s", p.Device, p.Problem)
	}
	if p.Problem != "" {
		return fmt.Sprintf("%s cannot be used: %s (%s)", p.Device, p.Problem, p.Path)
	}
	platform := strings.Join(strings.Fields(p.Version), " ") // it may have several lines
	if !strings.HasPrefix(platform, p.Platform) {
		platform = strings.TrimSpace(p.Platform + " " + platform)
	}
	return fmt.Sprintf("%s, platform %s, PJRT %s, devices %s, %s (%s)", p.Device, platform, p.API,
		strings.Join(p.Devices, " "), p.memoryText(), p.Path)
}

// lines are the report in text, one for each plug-in.
func (r xlaReport) lines() []string {
	if len(r.Plugins) == 0 {
		return []string{r.Problem}
	}
	var lines []string
	for _, p := range r.Plugins {
		lines = append(lines, p.String())
	}
	return lines
}
