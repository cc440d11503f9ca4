package main

import (
	"fmt"
	"os"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/machine"
)

// gpuReport is the memory of the GPU that --device names, in bytes.
type gpuReport struct {
	Name   string `json:"name,omitempty"`
	Total  int64  `json:"total_bytes,omitempty"`
	Free   int64  `json:"free_bytes,omitempty"`
	Usable int64  `json:"usable_bytes,omitempty"` // that a process which begins now may take
	// Problem says why nothing is known.
	Problem string `json:"problem,omitempty"`
}

// gpuOf describes the GPU of a device of this machine by its name; nil where tensors live in memory of the machine.
func gpuOf(device string) *gpuReport {
	if !graphx.NamedProfile(device).OwnMemory {
		return nil
	}
	named, err := graphx.NamedGPU(device)
	if err != nil {
		return &gpuReport{Problem: err.Error()}
	}
	gpu, err := machine.InspectGPUs(os.DirFS("/")).Device(named.Number, os.Getenv)
	if err != nil {
		return &gpuReport{Problem: err.Error()}
	}
	return &gpuReport{Name: gpu.Name, Total: gpu.Total, Free: gpu.Free, Usable: gpu.Usable(named.Fraction)}
}

// String is the report in text.
func (r gpuReport) String() string {
	if r.Problem != "" {
		return "memory of the GPU unknown: " + r.Problem
	}
	return fmt.Sprintf("%s: memory %s, %s free, of which a process may take %s", r.Name, sizeText(r.Total),
		sizeText(r.Free), sizeText(r.Usable))
}
