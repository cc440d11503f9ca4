package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestInspectGPUs: what nvidia-smi says, why it says nothing, and nothing where there is no GPU.
func TestInspectGPUs(t *testing.T) {
	absent := &exec.Error{Name: "nvidia-smi", Err: exec.ErrNotFound}
	driver := system(map[string]string{"dev/nvidiactl": ""})
	for _, c := range []struct {
		name, text string
		err        error
		driver     bool
		want       []string
	}{
		{name: "two", text: "NVIDIA H200, 580.65.06, 143771, 143160\nNVIDIA GB10, 580.95, [N/A], [N/A]\n", driver: true, want: []string{
			"NVIDIA H200, 140.4 GiB, 139.8 GiB free, driver 580.65.06", "NVIDIA GB10, memory is not told, driver 580.95",
		}},
		{name: "no GPU", err: absent},
		{name: "no program", err: absent, driver: true, want: []string{"name and memory are not known: " + absent.Error()}},
		{name: "broken driver", err: errors.New("exit status 9"), want: []string{"name and memory are not known: exit status 9"}},
		{name: "other output", text: "No devices were found\n", want: []string{`nvidia-smi printed "No devices were found\n", want name, driver, total and free memory`}},
	} {
		fsys := system(nil)
		if c.driver {
			fsys = driver
		}
		got := inspectGPUs(fsys, func(time.Duration) (string, error) { return c.text, c.err })
		if !slices.Equal(got.lines(), c.want) {
			t.Errorf("%s: %q, want %q", c.name, got.lines(), c.want)
		}
		if table := (report{gpus: got}).table(); strings.Count(table, "\ngpu  ") != len(c.want) {
			t.Errorf("%s: %s", c.name, table)
		}
	}
}

// TestSMI_Hangs: a program that does not end is given up after its time, also when a program that it began holds its
// output, and the error says so.
func TestSMI_Hangs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script")
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "nvidia-smi"), []byte("#!/bin/sh\nsleep 20\necho late\n"),
		0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	began := time.Now()
	_, err := smi(50 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "no answer in 50ms") {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("given up after %v", took)
	}
}

// FuzzGPUs: no text ends the command, or makes up memory that is negative.
func FuzzGPUs(f *testing.F) {
	for _, text := range []string{"", "NVIDIA H200, 580.65.06, 143771, 143160\n", "a,b,9223372036854775807,-1",
		",,,\n,,,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := parseGPUs(text) // an error is fine
		for _, g := range list {
			if g.Total < 0 || g.Free < 0 {
				t.Errorf("%+v", g)
			}
		}
	})
}
