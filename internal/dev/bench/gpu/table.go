package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// table prints the lines of files, ours and those of peers.py, as tables of Markdown.
func table(w io.Writer, files []string) error {
	var all []result
	for _, name := range files {
		list, err := read(name)
		if err != nil {
			return err
		}
		all = append(all, list...)
	}
	fmt.Fprintln(w, "| shape | job | batch x tokens | weights | who | tokens/s | times transformers | "+
		"TFLOP/s (of the peak) | GB/s read (of the peak) | step = rollouts + training, s | compiling, s | first run, s |")
	fmt.Fprintln(w, "|"+strings.Repeat("---|", 12))
	peers := peersOf(all)
	for _, r := range all {
		if r.Job != "gap" {
			fmt.Fprintln(w, row(r, peers))
		}
	}
	gapTable(w, all)
	return nil
}

// read returns the figures of a file.
func read(name string) (list []result, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintf(os.Stderr, "gpu: %s:%d: left out: %v\n", name, n, err) // half a line of a job that was killed
			continue
		}
		if r.Rate != 0 { // else it is of parity, or versions
			list = append(list, r)
		}
	}
	return list, lines.Err()
}

func row(r result, peers map[contest]rates) string {
	flops, bytes := "", ""
	if c, ok := known[r.Shape]; ok {
		top := peaks[r.Card]
		if r.Weights != "bfloat16" {
			top.flops = 0 // another one
		}
		flops = amount(r.Rate*flopOfToken(&c, r), 1e12, top.flops)
		bytes = amount(r.Rate*bytesOfToken(&c, r), 1e9, top.bytes)
	}
	times := ""
	if r.Who == "art" {
		times = peers[contestOf(r)].times(r.Rate)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %.4g | %s | %s | %s | %s | %s | %.3g |",
		r.Shape, jobOf(r), tokensOf(r), typesOf(r), r.Who, r.Rate, times, flops, bytes, stepOf(r), compiling(r), r.First)
}

// amount is a rate in a unit, and its share of the most there may be if that is known.
func amount(rate, unit, most float64) string {
	switch {
	case rate == 0:
		return ""
	case most == 0:
		return fmt.Sprintf("%.3g", rate/unit)
	}
	return fmt.Sprintf("%.3g (%.2g %%)", rate/unit, 100*rate/most)
}

// jobOf is a job and how it was done.
func jobOf(r result) string {
	s := r.Job
	if r.How != "" {
		s += ", " + r.How
	}
	if r.Steps > 0 {
		s += fmt.Sprintf(", %d a call", r.Steps)
	}
	if r.Recompute {
		s += ", layers computed again"
	}
	if r.Devices > 1 {
		s += fmt.Sprintf(", %d devices", r.Devices)
	}
	return s + settings(r)
}

// settings are those that follow a device's name.
func settings(r result) string {
	if _, after, ok := strings.Cut(r.Device, ","); ok {
		return ", " + after
	}
	return ""
}

func tokensOf(r result) string {
	if r.Prompt > 0 {
		return fmt.Sprintf("%d x (%d + %d)", r.Batch, r.Prompt, r.Tokens)
	}
	return fmt.Sprintf("%d x %d", r.Batch, r.Tokens)
}

func typesOf(r result) string {
	if r.Cache != "" && r.Cache != r.Weights {
		return r.Weights + ", cache " + r.Cache
	}
	return r.Weights
}

// stepOf says where the time of a step of GRPO goes.
func stepOf(r result) string {
	if r.Rollouts == 0 {
		return ""
	}
	return fmt.Sprintf("%.3g = %.3g + %.3g", r.Median, r.Rollouts, r.Training)
}

// compiling is how long it took: cold, or with programs that an earlier run has kept.
func compiling(r result) string {
	switch {
	case r.Programs == 0:
		return ""
	case r.Kept == 0:
		return fmt.Sprintf("%.3g cold", r.Compile)
	case r.Kept == r.Programs:
		return fmt.Sprintf("%.3g warm", r.Compile)
	}
	return fmt.Sprintf("%.3g, %d of %d kept", r.Compile, r.Kept, r.Programs)
}
