package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/dev/bench/devicebench"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/internal/quantity"
)

func init() { verbs["doctor"] = doctor(devicebench.Usual) }

// doctor returns the verb that reports what this machine can do.
func doctor(e devicebench.Effort) verb {
	return verb{
		summary: "what this machine can do",
		text: `
Prints what this machine can do, and what is wrong with it or makes it slow. It measures, in 2 to 3
seconds, memory bandwidth in GB/s and a square matmul in GFLOP/s, with one worker and with all. Each
figure is the best of several runs.

It also loads the plug-ins for XLA that it finds, and prints their versions and devices. The name
and the memory of a GPU come from nvidia-smi: the plug-ins' Go interface reports neither.

The exit status is 1 when no device can be opened.

environment:
  ART_CPU            instruction set: portable, avx2, avx512 or neon; the best one when empty
  GOMAXPROCS         number of workers
  PJRT_PLUGIN_LIBRARY_PATH
                     the only folders to look for XLA's plug-ins in; the usual ones when not set`,
		define: func(flags *flag.FlagSet) action {
			asJSON := flags.Bool("json", false, "print one JSON object")
			return func(_ []string, stdout, stderr io.Writer) error {
				return diagnose(e, *asJSON, stdout, newProgress(stderr))
			}
		},
	}
}

// report is what doctor prints.
type report struct {
	platform
	machine.GPUs
	*devicebench.Speeds           // nil when no device can be opened
	XLA                 xlaReport `json:"xla"`
	Notes               []string  `json:"notes"`
}

// diagnose examines this machine and prints what it finds, as far as possible even where no device can be opened.
func diagnose(e devicebench.Effort, asJSON bool, stdout io.Writer, p progress) error {
	m := inspectPlatform(os.DirFS("/"))
	r := report{platform: m, GPUs: machine.InspectGPUs(os.DirFS("/")), XLA: inspectXLA(), Notes: m.notes()}
	r.XLA.addMemory(m, r.GPUs.List)
	problem := m.problem
	if problem == nil {
		r.Speeds, problem = e.Measure(m.facts, func(what string) { p.say("%s", what) })
		p.say("")
	}
	if err := r.print(asJSON, stdout); err != nil {
		return err
	}
	return problem
}

func (r report) print(asJSON bool, stdout io.Writer) error {
	if asJSON {
		return writeJSON(stdout, r)
	}
	return write(stdout, r.table())
}

// lowMemory is little: training a model of 100 million parameters takes 2 GiB.
const lowMemory = 2 << 30

// notes are the problems of a machine, each with what to do about it.
func (m platform) notes() []string {
	notes := []string{} // an empty list in JSON, not null
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }

	best := m.Available[len(m.Available)-1]
	switch {
	case m.problem != nil:
		add("%v. No device can be opened: unset %s.", m.problem, cpu.InstructionsEnv)
	case m.Instructions != best:
		add("%s chooses %s, but this CPU has %s, which is faster: unset it.", cpu.InstructionsEnv, m.Instructions, best)
	case best == cpu.Plain:
		add("There is no AVX2, AVX-512 or NEON: the device runs plain Go, many times slower.")
	}
	allowed := m.Cores
	if m.CgroupCores > 0 {
		allowed = min(allowed, int(math.Ceil(m.CgroupCores)))
	}
	switch {
	case m.Workers > allowed:
		add("%d workers share %s cores, and wait for one another: set GOMAXPROCS=%d.", m.Workers, coresText(m), allowed)
	case m.Workers < allowed:
		add("%d of %s are used: GOMAXPROCS is lower.", m.Workers, quantity.Of(allowed, "core"))
	}
	if m.MemoryAvailable > 0 && m.MemoryAvailable < lowMemory {
		add("%s of memory are available: models of more than some million parameters may not fit. Stop other programs.",
			bytesText(m.MemoryAvailable))
	}
	if m.CgroupMemory > 0 && m.CgroupMemory < lowMemory {
		add("The cgroup ends the process at %s of memory: raise its memory.max, and set GOMEMLIMIT below it.",
			bytesText(m.CgroupMemory))
	}
	return notes
}

// coresText is the number of usable cores, a fraction when a cgroup limits them.
func coresText(m platform) string {
	if m.CgroupCores > 0 {
		return fmt.Sprintf("%.4g", m.CgroupCores)
	}
	return fmt.Sprint(m.Cores)
}

// table is the report in text.
func (r report) table() string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		text := wrap(fmt.Sprintf(format, args...), width-label)
		fmt.Fprintf(&b, "%-*s%s\n", label, name, strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", label)))
	}
	line("go", "%s %s/%s", r.GoVersion, r.OS, r.Arch)
	if r.CPU != "" {
		line("cpu", "%s", r.CPU)
	}
	line("instructions", "%s", r.instructionsText())
	line("cores", "%s", r.coresLine())
	if r.MemoryTotal > 0 {
		line("memory", "%s", r.memoryLine())
	}
	for _, text := range gpuLines(r.GPUs) {
		line("gpu", "%s", text)
	}
	if s := r.Speeds; s != nil {
		line("read", "%6.1f GB/s with one worker, %.1f GB/s with %d (%s)", s.ReadOne, s.Read, r.Workers,
			bytesText(s.ReadBytes))
		line("gemm", "%6.1f GFLOP/s with one worker, %.1f GFLOP/s with %d (%d x %d x %d)",
			s.GEMMOne, s.GEMM, r.Workers, s.Size, s.Size, s.Size)
	}
	for _, text := range r.XLA.lines() {
		line("xla", "%s", text)
	}
	for _, note := range r.Notes {
		line("note", "%s", note)
	}
	return b.String()
}

// gpuLines are the GPUs in text, a line for each.
func gpuLines(g machine.GPUs) []string {
	if g.Problem != "" {
		return []string{g.Problem}
	}
	var lines []string
	for _, one := range g.List {
		memory := "memory unknown"
		if one.Total > 0 {
			memory = fmt.Sprintf("%s, %s free", bytesText(one.Total), bytesText(one.Free))
		}
		lines = append(lines, fmt.Sprintf("%s, %s, driver %s", one.Name, memory, one.Driver))
	}
	return lines
}
