package machine

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

// TestInspectGPUs: what nvidia-smi reports, why it reports nothing, and nothing where there is no GPU.
func TestInspectGPUs(t *testing.T) {
	absent := &exec.Error{Name: "nvidia-smi", Err: exec.ErrNotFound}
	driver := system(map[string]string{"dev/nvidiactl": ""})
	for _, c := range []struct {
		name, text string
		err        error
		driver     bool
		want       GPUs
	}{
		{
			name: "two", driver: true,
			text: "NVIDIA H200, 580.65.06, 143771, 143160, GPU-1a, Enabled\nNVIDIA GB10, 580.95, [N/A], [N/A], GPU-2b, [N/A]\n",
			want: GPUs{List: []GPU{
				{Name: "NVIDIA H200", Driver: "580.65.06", Total: 143771 << 20, Free: 143160 << 20, UUID: "GPU-1a", Parts: true},
				{Name: "NVIDIA GB10", Driver: "580.95", UUID: "GPU-2b"},
			}},
		},
		{name: "no GPU", err: absent},
		{name: "no program", err: absent, driver: true,
			want: GPUs{Problem: "name and memory are not known: " + absent.Error()}},
		{name: "broken driver", err: errors.New("exit status 9"),
			want: GPUs{Problem: "name and memory are not known: exit status 9"}},
		{name: "other output", text: "No devices were found\n", want: GPUs{
			Problem: `nvidia-smi printed "No devices were found\n", want name, driver, total and free memory, UUID, and MIG`,
		}},
	} {
		fsys := system(nil)
		if c.driver {
			fsys = driver
		}
		got := inspectGPUs(fsys, func(time.Duration) (string, error) { return c.text, c.err })
		if !slices.Equal(got.List, c.want.List) || got.Problem != c.want.Problem {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestSMI_Hangs: a program that hangs is killed after its time, also when a child process holds its output open, and
// the error says so.
func TestSMI_Hangs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program is a script")
	}
	folder := t.TempDir()
	script := []byte("#!/bin/sh\nsleep 20\necho late\n")
	if err := os.WriteFile(filepath.Join(folder, "nvidia-smi"), script, 0o700); err != nil { //nolint:gosec // it is run
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

// FuzzGPUs: no text causes a panic, or negative memory.
func FuzzGPUs(f *testing.F) {
	for _, text := range []string{
		"", "NVIDIA H200, 580.65.06, 143771, 143160, GPU-1a, Disabled\n", "a,b,9223372036854775807,-1,,", ",,,,,\n,,,,,",
	} {
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
