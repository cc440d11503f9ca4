package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/runs"
)

// TestSweepProgram is no test but the program that TestSweep sweeps: its arguments follow "--". It logs a reward that
// depends on rate and seed, and fails for rate "bad".
func TestSweepProgram(t *testing.T) {
	at := slices.Index(os.Args, "--")
	if os.Getenv("ART_SWEEP_PROGRAM") == "" || at < 0 {
		t.Skip("run by TestSweep")
	}
	dir, seed, rate := os.Args[at+1], os.Args[at+2], os.Args[at+3]
	fmt.Println("trial of rate", rate)
	if rate == "bad" {
		t.Fatal("no such rate")
	}
	run, err := runs.Open(dir, "p", "m", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if err := run.WriteModel(map[string]string{"name": "m", "project": "p"}); err != nil {
		t.Fatal(err)
	}
	s, _ := strconv.ParseFloat(seed, 64)
	r, _ := strconv.ParseFloat(rate, 64)
	for step := range 3 {
		reward := r*float64(3-step) + s
		err := run.Commit(step, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "adapter_model.safetensors"), []byte(rate), 0o644)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Log("val", step, map[string]float64{"val/reward": reward}); err != nil {
			t.Fatal(err)
		}
	}
}

// sweepArgs are the arguments of a sweep of TestSweepProgram.
func sweepArgs(out string, flags ...string) []string {
	args := append([]string{"runs", "sweep", "--out", out}, flags...)
	return append(args, "--", os.Args[0], "-test.run=^TestSweepProgram$", "--", "{dir}", "{seed}", "{rate}")
}

// A sweep runs each combination with each seed, and reports mean and interval over the seeds. A second one runs only
// what is new, and a trial that fails does not end the others.
func TestSweep(t *testing.T) {
	t.Setenv("ART_SWEEP_PROGRAM", "1")
	out := filepath.Join(t.TempDir(), "sweep")
	status, stdout, stderr := command(sweepArgs(out, "--seeds", "3", "--set", "rate=10,20", "--parallel", "2")...)
	if status != 0 || strings.Count(stderr, "done in") != 6 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, want := range []string{
		"rate=10   3/3    2     12 (9.516 to 14.48)  32 (29.52 to 34.48)", // 10 + seed, 30 + seed
		"rate=20   3/3    2     22 (19.52 to 24.48)  62 (59.52 to 64.48)",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	const wantTable = "| SETTINGS | SEEDS | STEP | VAL/REWARD | HIGHEST |\n|---|---|---|---|---|\n" +
		"| rate=10 | 3/3 | 2 | 12 (9.516 to 14.48) | 32 (29.52 to 34.48) |\n" +
		"| rate=20 | 3/3 | 2 | 22 (19.52 to 24.48) | 62 (59.52 to 64.48) |\n"
	if table, err := os.ReadFile(filepath.Join(out, "sweep.md")); err != nil || string(table) != wantTable {
		t.Errorf("the table: %v\n%s", err, table)
	}
	if !strings.HasSuffix(stdout, filepath.Join(out, "sweep.md")+"\n"+filepath.Join(out, "sweep.svg")+"\n") {
		t.Errorf("the files are not named in\n%s", stdout)
	}
	if svg, err := os.ReadFile(filepath.Join(out, "sweep.svg")); err != nil || !strings.Contains(string(svg), "rate=20") {
		t.Errorf("the plot: %v", err)
	}
	printed, err := os.ReadFile(filepath.Join(out, "rate=10,seed=1", "output.txt"))
	if err != nil || !strings.HasPrefix(string(printed), "trial of rate 10\n") {
		t.Errorf("output.txt: %q, %v", printed, err)
	}

	status, stdout, stderr = command(sweepArgs(out, "--seeds", "3", "--set", "rate=10,bad,30")...)
	if status != 1 || strings.Count(stderr, "done before") != 3 || strings.Count(stderr, "done in") != 3 ||
		strings.Count(stderr, "exit status 1") != 6 { // as it happens, and at the end
		t.Errorf("status %d: %s", status, stderr)
	}
	if !strings.Contains(stdout, "rate=bad  0/3") || !strings.Contains(stdout, "rate=30   3/3") {
		t.Errorf("table:\n%s", stdout)
	}
}

// A value with a vertical bar stays in its cell.
func TestMarkdownTable(t *testing.T) {
	const want = "| A | B |\n|---|---|\n| x=1\\|2 | 3 |\n"
	if got := markdownTable([][]string{{"A", "B"}, {"x=1|2", "3"}}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A command that would not do what was asked for is refused, and one that was begun with another command is kept.
func TestSweep_Refuses(t *testing.T) {
	t.Setenv("ART_SWEEP_PROGRAM", "1")
	wantFailure(t, "runs sweep", "want a command")
	wantFailure(t, "runs sweep --seeds 0 -- x {dir}", "--seeds 0")
	wantFailure(t, "runs sweep --parallel 0 -- x {dir}", "--parallel 0")
	wantFailure(t, "runs sweep -- x", "no {dir}")
	wantFailure(t, "runs sweep --seeds 2 -- x {dir}", "no {seed}")
	wantFailure(t, "runs sweep --set rate=1,2 -- x {dir}", "no {rate}")
	wantFailure(t, "runs sweep -- x {dir} {rate}", "{rate}", "no --set")
	wantFailure(t, "runs sweep --set seed=1 -- x {dir}", "{seed} has a meaning")
	wantFailure(t, "runs sweep --set rate=1 --set rate=2 -- x {dir} {rate}", "rate is set twice")
	wantFailure(t, "runs sweep --set rate=1,2,1 -- x {dir} {rate}", "two trials have the folder", "rate=1,seed=1")
	wantFailure(t, "runs sweep --set base=a/b,a_b -- x {dir} {base}", "two trials have the folder", "base=a_b,seed=1")
	out := t.TempDir()
	wantOutput(t, "runs sweep --dry-run --out o --seeds 2 --set rate=1,2 -- x {dir} {seed} {rate}",
		"x "+filepath.Join("o", "rate=2,seed=1", "runs")+" 1 2\n")
	if status, _, stderr := command(sweepArgs(out, "--set", "rate=1")...); status != 0 {
		t.Fatal(stderr)
	}
	other := append(sweepArgs(out, "--set", "rate=1"), "more")
	if status, _, stderr := command(other...); status != 1 || !strings.Contains(stderr, "another command") {
		t.Errorf("status %d: %s", status, stderr)
	}
}
