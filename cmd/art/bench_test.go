package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu"
)

const someJobs = "^(product/(2048x8x896/plain|1x896x4864/transposed)|.*/256x896)$"

// TestBench_JSON: each result has its keys, and numbers that agree.
func TestBench_JSON(t *testing.T) {
	status, stdout, stderr := command("bench", "--json", "--time", "1ms", "--run", someJobs)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	got := decode(t, stdout)
	machine, _ := got["machine"].(map[string]any)
	checkMachine(t, machine)
	results, _ := got["results"].([]any)
	if len(results) != 11 {
		t.Fatalf("%d results, want 11", len(results))
	}
	for _, r := range results {
		one := r.(map[string]any)
		name := one["name"].(string)
		positive(t, one, "best_ns", "median_ns", "gb_per_s")
		if runs := one["runs"].(float64); runs < 3 || one["best_ns"].(float64) > one["median_ns"].(float64) {
			t.Errorf("%s: %v", name, one)
		}
		if _, ok := one["gflop_per_s"]; ok != strings.HasPrefix(name, "product/") {
			t.Errorf("%s: gflop_per_s is %v", name, one["gflop_per_s"])
		}
	}
}

// TestBench_Table: as many rows as operations, in lines that fit.
func TestBench_Table(t *testing.T) {
	status, stdout, stderr := command("bench", "--time", "0s", "--run", someJobs)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) != 12 || !strings.HasPrefix(lines[0], "operation ") ||
		!strings.HasPrefix(lines[2], "product/2048x8x896/plain ") {
		t.Errorf("\n%s", stdout)
	}
	checkWidth(t, stdout)
}

// TestBench_NoDevice: there is nothing to measure.
func TestBench_NoDevice(t *testing.T) {
	t.Setenv("ART_CPU", "mmx")
	if status, stdout, stderr := command("bench"); status != 1 || stdout != "" || !strings.Contains(stderr, "mmx") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
}

// TestJobs: what peers are compared in is there, each once, and people can read the widest row.
func TestJobs(t *testing.T) {
	seen := map[string]bool{}
	for _, j := range jobs() {
		if seen[j.name] || !regexp.MustCompile(`^[a-z]+/\d+x\d+(x\d+/(plain|transposed))?$`).MatchString(j.name) {
			t.Errorf("%q is there twice, or is no name", j.name)
		}
		seen[j.name] = true
	}
	for _, want := range []string{
		"product/512x512x512/plain", "product/2048x2048x2048/plain", "product/64x896x4864/transposed",
		"product/1x896x151936/plain", "product/1x896x151936/transposed", "product/2048x896x8/plain",
		"add/4096x1024", "exp/256x896", "sum/256x896", "softmax/256x896", "rmsnorm/256x896", "swiglu/256x896", "rope/256x896", "adamw/256x896", "transpose/256x896",
	} {
		if !seen[want] {
			t.Errorf("no %s", want)
		}
	}
	slow := result{Name: "product/2048x2048x2048/plain", Best: 1e13, Median: 1e13, Runs: 1e6, GFLOP: 123456.7, GB: 12345.6}
	checkWidth(t, benchTable(jobs()).head()+benchTable(jobs()).row(slow))
}

// newDevice returns a device that ends with the test.
func newDevice(t *testing.T) *cpu.Device {
	t.Helper()
	d, err := cpu.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Finalize)
	return d
}
