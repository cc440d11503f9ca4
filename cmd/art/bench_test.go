package main

import (
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/dev/bench/devicebench"
)

const someJobs = "^(matmul/(2048x8x896/plain|1x896x4864/transposed)|.*/256x896)$"

// TestBench_JSON: each result has its keys, and consistent numbers.
func TestBench_JSON(t *testing.T) {
	status, stdout, stderr := command("debug", "bench", "device", "--json", "--time", "1ms", "--run", someJobs)
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
		if _, ok := one["gflop_per_s"]; ok != strings.HasPrefix(name, "matmul/") {
			t.Errorf("%s: gflop_per_s is %v", name, one["gflop_per_s"])
		}
	}
}

// TestBench_Table: as many rows as operations, in lines that fit.
func TestBench_Table(t *testing.T) {
	status, stdout, stderr := command("debug", "bench", "device", "--time", "0s", "--run", someJobs)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) != 12 || !strings.HasPrefix(lines[0], "operation ") ||
		!strings.HasPrefix(lines[2], "matmul/2048x8x896/plain ") {
		t.Errorf("\n%s", stdout)
	}
	checkWidth(t, stdout)
}

// TestBench_NoDevice: without a device nothing can be measured.
func TestBench_NoDevice(t *testing.T) {
	t.Setenv("ART_CPU", "mmx")
	status, stdout, stderr := command("debug", "bench", "device")
	if status != 1 || stdout != "" || !strings.Contains(stderr, "mmx") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
}

// TestBench_Width: the widest row fits.
func TestBench_Width(t *testing.T) {
	table := benchTable(devicebench.Jobs())
	slow := devicebench.Result{
		Name: "matmul/2048x2048x2048/plain", Best: 1e13, Median: 1e13, Runs: 1e6, GFLOP: 123456.7, GB: 12345.6,
	}
	checkWidth(t, table.head()+table.row(slow))
}

// TestBench_Model: each kind of measurement has its keys, and figures that agree with one another.
func TestBench_Model(t *testing.T) {
	for _, c := range []struct {
		args []string
		rate string
		n    int
	}{
		{[]string{"decode", "--requests", "1,3", "--prompt", "20", "--tokens", "16", "--repeat", "1"}, "tokens_per_s", 2},
		{[]string{"prefill", "--prompt", "20,30", "--repeat", "2"}, "tokens_per_s", 2},
		{[]string{"serve", "--agents", "3", "--turns", "2", "--system", "20", "--new", "5", "--tokens", "4"}, "turns_per_s", 1},
	} {
		args := append([]string{"debug", "bench", "--json"}, c.args[1:]...)
		status, stdout, stderr := command(append(args, c.args[0], "tiny")...)
		if status != 0 {
			t.Fatalf("%v: status %d, %s", c.args, status, stderr)
		}
		results, _ := decode(t, stdout)["results"].([]any)
		if len(results) != c.n {
			t.Fatalf("%v: %s", c.args, stdout)
		}
		for _, r := range results {
			positive(t, r.(map[string]any), c.rate, "seconds", "requests", "prompt_tokens", "tokens", "runs")
		}
	}
	for _, args := range [][]string{
		{}, {"--json"}, {"--run", "sum"}, {"device", "--tokens", "1"}, {"device", "--dir", "x"},
		{"decode"}, {"train", "tiny"}, {"--tokens", "1", "decode", "tiny"}, {"--requests", "0", "prefill", "tiny"},
		{"--prompt", "64", "train"}, {"--group-size", "2", "decode", "tiny"}, {"--agents", "3"}, // they would do nothing
	} {
		status, stdout, stderr := command(append([]string{"debug", "bench"}, args...)...)
		if status != 2 || stdout != "" || stderr == "" {
			t.Errorf("%v: status %d, %q, %q", args, status, stdout, stderr)
		}
	}
}
