package main

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/machine"
)

// TestDoctor_JSON: the keys that scripts read are there, with plausible numbers.
func TestDoctor_JSON(t *testing.T) {
	tinyDoctor(t)
	status, stdout, stderr := command("doctor", "--json")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	got := decode(t, stdout)
	checkMachine(t, got)
	positive(t, got, "read_bytes", "read_gb_per_s", "read_one_worker_gb_per_s", "gemm_size", "gemm_gflop_per_s",
		"gemm_one_worker_gflop_per_s")
	if got["read_bytes"] != float64(1<<20) || got["gemm_size"] != 64.0 {
		t.Errorf("read %v bytes, multiplied %v; want 1 MiB and 64", got["read_bytes"], got["gemm_size"])
	}
	if _, ok := got["notes"].([]any); !ok {
		t.Errorf("notes are %v, want a list", got["notes"])
	}
}

// checkMachine checks the facts of this machine.
func checkMachine(t *testing.T, got map[string]any) {
	t.Helper()
	positive(t, got, "cores", "workers")
	if got["go_version"] != runtime.Version() || got["os"] != runtime.GOOS || got["arch"] != runtime.GOARCH {
		t.Errorf("go_version %v, os %v, arch %v", got["go_version"], got["os"], got["arch"])
	}
	available, _ := got["instructions_available"].([]any)
	if !slices.Contains(available, "portable") || !slices.Contains(available, got["instructions"]) {
		t.Errorf("instructions %v of %v", got["instructions"], available)
	}
	if runtime.GOOS == "linux" {
		positive(t, got, "memory_total_bytes", "memory_available_bytes")
	}
}

// TestDoctor_XLA: without a plug-in the report says how to get one, with one it describes it.
func TestDoctor_XLA(t *testing.T) {
	tinyDoctor(t)
	_, stdout, _ := command("doctor", "--json")
	got, _ := decode(t, stdout)["xla"].(map[string]any)
	if list, ok := got["plugins"].([]any); !ok || len(list) != 0 || got["problem"] == "" {
		t.Errorf("%v", got)
	}
	_, stdout, _ = command("doctor")
	if !strings.Contains(stdout, "\nxla           ") {
		t.Errorf("nothing of xla in\n%s", stdout)
	}
	r := xlaReport{Plugins: []xlaPlugin{
		{Device: "xla:cuda", Path: "/a.so", Problem: "no GPU"},
		{Device: "xla:cuda", Problem: "none was found"},
		{Device: "xla:cpu", Path: "/b.so", API: "0.116", Platform: "host", Devices: []string{"cpu:0", "cpu:1"}},
		{Device: "xla:cuda", Path: "/c.so", API: "0.104", Platform: "cuda", Version: "cuda 13000\ncudnn 91200",
			Devices: []string{"cuda:0", "cuda:1"}},
		{Device: "xla:/d.so", Path: "/d.so", API: "0.104", Platform: "other", Devices: []string{"x:0"}},
	}}
	r.addMemory(platform{MemoryTotal: 64 << 30, MemoryAvailable: 32 << 30},
		[]machine.GPU{{Total: 80 << 30, Free: 79 << 30}, {Total: 80 << 30, Free: 3 << 30}})
	want := []string{
		"xla:cuda cannot be used: no GPU (/a.so)", "xla:cuda cannot be used: none was found",
		"xla:cpu, platform host, PJRT 0.116, devices cpu:0 cpu:1, memory 64.0 GiB, 32.0 GiB free (/b.so)",
		"xla:cuda, platform cuda 13000 cudnn 91200, PJRT 0.104, devices cuda:0 cuda:1, " +
			"memory 80.0 GiB, 79.0 GiB free; 80.0 GiB, 3.0 GiB free (/c.so)",
		"xla:/d.so, platform other, PJRT 0.104, devices x:0, memory unknown (/d.so)",
	}
	if got := r.lines(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestDoctor_Table: the text report has the same facts, in lines that fit.
func TestDoctor_Table(t *testing.T) {
	tinyDoctor(t)
	status, stdout, stderr := command("doctor")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	for _, want := range []string{"go            go", "instructions  ", "cores         ", "read          ", " GB/s",
		"gemm          ", " GFLOP/s", "(64 x 64 x 64)"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	checkWidth(t, stdout)
}

// TestDoctor_ChosenInstructions: the report shows the chosen instruction set.
func TestDoctor_ChosenInstructions(t *testing.T) {
	tinyDoctor(t)
	t.Setenv("ART_CPU", "portable")
	status, stdout, _ := command("doctor")
	if status != 0 || !strings.Contains(stdout, "portable of portable") || !strings.Contains(stdout, "ART_CPU=portable") {
		t.Errorf("status %d\n%s", status, stdout)
	}
}

// TestDoctor_NoDevice: when no device can be opened, the report says why, and has everything else.
func TestDoctor_NoDevice(t *testing.T) {
	tinyDoctor(t)
	t.Setenv("ART_CPU", "mmx")
	status, stdout, stderr := command("doctor", "--json")
	if status != 1 || !strings.Contains(stderr, `art: doctor: ART_CPU: no instruction set is called "mmx"`) {
		t.Errorf("status %d, standard error %q", status, stderr)
	}
	got := decode(t, stdout)
	positive(t, got, "cores")
	notes, _ := got["notes"].([]any)
	if got["instructions"] != "" || got["art_cpu"] != "mmx" || len(notes) == 0 ||
		!strings.Contains(notes[0].(string), "unset ART_CPU") {
		t.Errorf("%v", got)
	}
	if _, ok := got["read_gb_per_s"]; ok {
		t.Error("there is a rate, but nothing can be measured")
	}
	status, stdout, _ = command("doctor")
	if status != 1 || !strings.Contains(stdout, "none of portable") {
		t.Errorf("status %d\n%s", status, stdout)
	}
}

// TestDoctor_GPUs: a line for each GPU, or why nothing is known.
func TestDoctor_GPUs(t *testing.T) {
	for _, c := range []struct {
		gpus machine.GPUs
		want []string
	}{
		{machine.GPUs{}, nil},
		{machine.GPUs{Problem: "broken driver"}, []string{"broken driver"}},
		{machine.GPUs{List: []machine.GPU{
			{Name: "NVIDIA H200", Driver: "580.65.06", Total: 143771 << 20, Free: 143160 << 20},
			{Name: "NVIDIA GB10", Driver: "580.95"},
		}}, []string{
			"NVIDIA H200, 140.4 GiB, 139.8 GiB free, driver 580.65.06", "NVIDIA GB10, memory unknown, driver 580.95",
		}},
	} {
		if got := gpuLines(c.gpus); !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
		if table := (report{GPUs: c.gpus}).table(); strings.Count(table, "\ngpu  ") != len(c.want) {
			t.Errorf("%q: %s", c.want, table)
		}
	}
}

// good is a machine without problems.
func good() platform {
	return platform{
		Instructions: "avx512", Available: []string{"portable", "avx2", "avx512"}, Cores: 4, Workers: 4,
		MemoryTotal: 64 << 30, MemoryAvailable: 32 << 30,
	}
}

// TestNotes: each problem has one note, and the lines of all reports fit.
func TestNotes(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(m *platform)
	}{
		{"", func(*platform) {}},
		{"", func(m *platform) { m.CgroupCores, m.Workers = 1.5, 2 }},
		{"", func(m *platform) { m.Instructions, m.Available = "avx2", []string{"portable", "avx2"} }},
		{"avx512, which is faster", func(m *platform) { m.Instructions, m.Chosen = "avx2", "avx2" }},
		{"There is no AVX2", func(m *platform) { m.Instructions, m.Available = "portable", []string{"portable"} }},
		{"unset ART_CPU", func(m *platform) { m.Instructions, m.problem = "", errFull }},
		{"4 workers share 1.5 cores, and wait for one another: set GOMAXPROCS=2", func(m *platform) { m.CgroupCores = 1.5 }},
		{"8 workers share 4 cores", func(m *platform) { m.Workers = 8 }},
		{"1 of 4 cores", func(m *platform) { m.Workers = 1 }},
		{"1000 MiB of memory", func(m *platform) { m.MemoryAvailable = 1000 << 20 }},
		{"at 1.0 GiB", func(m *platform) { m.CgroupMemory = 1 << 30 }},
	} {
		m := good()
		c.change(&m)
		notes := m.notes()
		if c.want == "" && len(notes) > 0 || c.want != "" && (len(notes) != 1 || !strings.Contains(notes[0], c.want)) {
			t.Errorf("want a note with %q, got %q", c.want, notes)
		}
		table := report{platform: m, Notes: notes}.table()
		if strings.Count(table, "\nnote ") != len(notes) {
			t.Errorf("not %d notes in\n%s", len(notes), table)
		}
		checkWidth(t, table)
	}
}
