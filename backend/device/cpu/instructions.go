package cpu

import "github.com/goart-dev/art/backend/device/cpu/internal/cpuid"

// InstructionsEnv is the environment variable that chooses an instruction set by name; empty is the best one.
const InstructionsEnv = cpuid.Env

// Plain is the name of the instruction set that works everywhere, and is slow.
const Plain = "portable"

// Instructions returns the name of the instruction set that a new device uses, and those that this CPU has, the slowest
// first. It fails, as [New] does, when [InstructionsEnv] asks for one that there is not.
func Instructions() (used string, available []string, err error) {
	for _, l := range cpuid.Supported() {
		available = append(available, l.String())
	}
	level, err := cpuid.Default()
	if err != nil {
		return "", available, err
	}
	return level.String(), available, nil
}

// Read loads all numbers of x with all workers and does nothing with them. The rate at which it does is a bound for
// what goes through memory once, such as the matmul of a row and a large matrix.
func (d *Device) Read(x []float32) { d.env.Kernels.Read(d.env.Pool, x) }
