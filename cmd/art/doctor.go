package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"runtime"
	"strings"

	"github.com/goart-dev/art/backend/device/cpu"
	"github.com/goart-dev/art/internal/dev/bench/devicebench"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/internal/quantity"
)

// doctorEffort is how long doctor measures. Tests replace it.
var doctorEffort = devicebench.Usual

func init() {
	verbs["doctor"] = verb{
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
				p := newProgress(stderr)
				m := inspectPlatform(os.DirFS("/"))
				r := report{platform: m, GPUs: machine.InspectGPUs(os.DirFS("/")), XLA: inspectXLA(), Notes: m.notes()}
				r.XLA.addMemory(m, r.GPUs.List)
				problem := m.problem
				if problem == nil {
					r.Speeds, problem = doctorEffort.Measure(m.facts, func(what string) { p.say("%s", what) })
					p.say("")
				}
				// What is known is printed even where no device can be opened.
				return errors.Join(writeResult(stdout, *asJSON, r, r.table()), problem)
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
	allowed, usable := m.Cores, fmt.Sprint(m.Cores)
	if m.CgroupCores > 0 {
		allowed, usable = min(allowed, int(math.Ceil(m.CgroupCores))), fmt.Sprintf("%.4g", m.CgroupCores)
	}
	switch {
	case m.Workers > allowed:
		add("%d workers share %s cores, and wait for one another: set GOMAXPROCS=%d.", m.Workers, usable, allowed)
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
	text := cmp.Or(m.Instructions, "none") + " of " + strings.Join(m.Available, ", ")
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
