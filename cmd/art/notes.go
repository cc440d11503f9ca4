package main

import (
	"fmt"
	"math"

	"github.com/goart-dev/art/backend/device/cpu"
)

// little is memory that is soon used up: a model of 100 million parameters takes 2 GiB in training.
const little = 2 << 30

// notes are what is wrong or slow about a machine, each with what to do about it.
func (m machine) notes() []string {
	notes := []string{} // an empty list in JSON, not null
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }

	best := m.Available[len(m.Available)-1]
	switch {
	case m.problem != nil:
		add("%v. Nothing can be computed: unset %s.", m.problem, cpu.InstructionsEnv)
	case m.Instructions != best:
		add("%s chooses %s, but this CPU has %s, which is faster: unset it.", cpu.InstructionsEnv, m.Instructions, best)
	case best == cpu.Plain:
		add("There is no AVX2, AVX-512 or NEON: plain Go computes, many times slower.")
	}
	allowed := m.Cores
	if m.CgroupCores > 0 {
		allowed = min(allowed, int(math.Ceil(m.CgroupCores)))
	}
	switch {
	case m.Workers > allowed:
		add("%d workers share %s cores, and wait for one another: set GOMAXPROCS=%d.", m.Workers, coresText(m), allowed)
	case m.Workers < allowed:
		add("%d of %d cores are used: GOMAXPROCS is lower.", m.Workers, allowed)
	}
	if m.MemoryAvailable > 0 && m.MemoryAvailable < little {
		add("%s of memory are available: models of more than some million parameters may not fit. Stop other programs.",
			bytesText(m.MemoryAvailable))
	}
	if m.CgroupMemory > 0 && m.CgroupMemory < little {
		add("The cgroup ends the process at %s of memory: raise its memory.max, and set GOMEMLIMIT below it.",
			bytesText(m.CgroupMemory))
	}
	return notes
}

// coresText is the number of cores that may be used, which a cgroup makes a fraction.
func coresText(m machine) string {
	if m.CgroupCores > 0 {
		return fmt.Sprintf("%.4g", m.CgroupCores)
	}
	return fmt.Sprint(m.Cores)
}
