package main

import (
	"fmt"
	"strings"
	"time"
)

// width of what is printed for people.
const width = 100

// label is the width of the first column of a report.
const label = 14

// table is the report for people.
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
	for _, text := range r.gpus.lines() {
		line("gpu", "%s", text)
	}
	if s := r.speeds; s != nil {
		line("read", "%6.1f GB/s with one worker, %.1f GB/s with %d (%s)", s.ReadOne, s.Read, r.Workers,
			bytesText(s.ReadBytes))
		line("gemm", "%6.1f GFLOP/s with one worker, %.1f GFLOP/s with %d (%d x %d x %d)",
			s.GEMMOne, s.GEMM, r.Workers, s.Cube, s.Cube, s.Cube)
	}
	for _, text := range r.XLA.lines() {
		line("xla", "%s", text)
	}
	for _, note := range r.Notes {
		line("note", "%s", note)
	}
	return b.String()
}

func (m machine) instructionsText() string {
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

func (m machine) coresLine() string {
	text := fmt.Sprintf("%d, %d workers", m.Cores, m.Workers)
	if m.CgroupCores > 0 {
		text += fmt.Sprintf("; the cgroup allows %.4g", m.CgroupCores)
	}
	return text
}

func (m machine) memoryLine() string {
	text := fmt.Sprintf("%s, %s available", bytesText(m.MemoryTotal), bytesText(m.MemoryAvailable))
	if m.CgroupMemory > 0 {
		text += fmt.Sprintf("; the cgroup allows %s", bytesText(m.CgroupMemory))
	}
	return text
}

// bytesText is a size for people.
func bytesText(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// durationText is a time for people, with three digits or more.
func durationText(d time.Duration) string {
	switch ns := float64(d.Nanoseconds()); {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.2f µs", ns/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.2f ms", ns/1e6)
	default:
		return fmt.Sprintf("%.2f s", ns/1e9)
	}
}

// wrap breaks a text into lines between words.
func wrap(text string, columns int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		size := len([]rune(word))
		switch {
		case i == 0:
		case column+1+size > columns:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += size
	}
	return b.String()
}
