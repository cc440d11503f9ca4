package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// program writes a program that prints these times, in nanoseconds, each time it is run with these verbs the next.
func program(t *testing.T, verbs string, times ...int) string {
	t.Helper()
	dir := t.TempDir()
	for i, ns := range times {
		text := fmt.Sprintf(`{"results":[{"name":"matmul","best_ns":%d},{"name":"other","best_ns":1000}]}`, ns)
		if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, i+1), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf("#!/bin/sh\n[ \"$*\" = '%[2]s' ] || exit 2\n"+
		"echo x >>%[1]s/runs\ncat %[1]s/$(wc -l <%[1]s/runs | tr -d ' ')\n", dir, verbs)
	path := filepath.Join(dir, "art")
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestCompare: slower in each round is an error, slower in one is noise.
func TestCompare(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("there is no shell")
	}
	for _, c := range []struct {
		name          string
		before, after []int
		slower        bool
	}{
		{"equal", []int{100, 100, 100}, []int{100, 100, 100}, false},
		{"noise", []int{100, 100, 100}, []int{150, 103, 98}, false},
		{"a machine that gets slower", []int{100, 200, 400}, []int{101, 205, 400}, false},
		{"faster", []int{100, 100, 100}, []int{50, 50, 50}, false},
		{"slower", []int{100, 200, 100}, []int{110, 215, 110}, true},
	} {
		var out bytes.Buffer
		before, after := program(t, "bench", c.before...), program(t, "debug bench", c.after...)
		err := compare(before, after, []string{"debug", "bench"}, 3, &out)
		if (err != nil) != c.slower {
			t.Errorf("%s: %v\n%s", c.name, err, &out)
		}
		if c.slower && !strings.Contains(err.Error(), `["matmul"]`) {
			t.Errorf("%s: %v does not name the operation", c.name, err)
		}
	}
	if err := judge(nil, io.Discard); err == nil {
		t.Error("nothing in common is no error")
	}
}

// TestPlotReleases: releases are in the order of their numbers, relative to the first.
func TestPlotReleases(t *testing.T) {
	folder := t.TempDir()
	for version, ns := range map[string]int{"v0.10.0": 50, "v0.9.0": 100} {
		if err := os.Mkdir(filepath.Join(folder, version), 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`{"machine":{"cpu_name":"Z80"},"results":[{"name":"matmul","best_ns":%d}]}`, ns)
		if err := os.WriteFile(filepath.Join(folder, version, "z80.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	machines, err := readReleases(folder)
	if err != nil {
		t.Fatal(err)
	}
	b := bars(machines["z80"]).Bars
	if len(b) != 2 || b[0].Name != "v0.9.0" || b[0].Value != 1 || b[1].Name != "v0.10.0" ||
		math.Abs(b[1].Value-2) > 1e-9 {
		t.Errorf("got %+v", b)
	}
	var out bytes.Buffer
	if err := run([]string{"plot", folder}, &out); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(folder, "z80.svg"))
	if err != nil || !bytes.Contains(content, []byte("<svg")) {
		t.Errorf("no drawing: %v", err)
	}
}
