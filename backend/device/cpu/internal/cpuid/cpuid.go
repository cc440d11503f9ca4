// Package cpuid chooses the instruction set that the kernels of the CPU device use.
package cpuid

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/cpuid/v2"
	"golang.org/x/sys/cpu"
)

// Env is the environment variable that chooses a level by name; empty is the best one.
const Env = "ART_CPU"

// Level is an instruction set that kernels are written for.
type Level int

// The levels. The zero value works everywhere.
const (
	Portable Level = iota // Go alone
	AVX2                  // amd64 with AVX2, FMA and BMI2
	AVX512                // amd64 with AVX-512 F, DQ, BW and VL
	NEON                  // arm64
)

var names = [...]string{Portable: "portable", AVX2: "avx2", AVX512: "avx512", NEON: "neon"}

// String is the level's name, as the environment variable spells it.
func (l Level) String() string {
	if l < 0 || int(l) >= len(names) {
		return fmt.Sprintf("Level(%d)", int(l))
	}
	return names[l]
}

// Supported returns the levels that this CPU has, the slowest first.
func Supported() []Level {
	levels := []Level{Portable}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2 {
		levels = append(levels, AVX2)
		if cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL {
			levels = append(levels, AVX512)
		}
	}
	if cpu.ARM64.HasASIMD {
		levels = append(levels, NEON)
	}
	return levels
}

// Default is the level that the environment variable [Env] names, or the best one where it is empty.
func Default() (Level, error) {
	level, err := Choose(os.Getenv(Env))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", Env, err)
	}
	return level, nil
}

// Choose returns the level of that name; "" is the best one that this CPU has.
func Choose(name string) (Level, error) {
	return choose(name, Supported())
}

func choose(name string, supported []Level) (Level, error) {
	if name == "" {
		return supported[len(supported)-1], nil
	}
	i := slices.Index(names[:], name)
	if i < 0 {
		return 0, fmt.Errorf("no instruction set is called %q; there are %s", name, strings.Join(names[:], ", "))
	}
	if !slices.Contains(supported, Level(i)) {
		return 0, fmt.Errorf("this CPU lacks %q; it has %v", name, supported)
	}
	return Level(i), nil
}

// AMD reports whether the processor is one of AMD's, or of Hygon's, which come from the same design.
func AMD() bool { return cpuid.CPU.VendorID == cpuid.AMD || cpuid.CPU.VendorID == cpuid.Hygon }

// SkylakeServer reports whether the processor is one of Intel's with the cores of that name: Skylake-SP, Cascade Lake
// or Cooper Lake.
func SkylakeServer() bool {
	return cpuid.CPU.VendorID == cpuid.Intel && cpuid.CPU.Family == 6 && cpuid.CPU.Model == 85
}
