package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// command runs the command and returns what it prints.
func command(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(args, &out, &errs)
	return status, out.String(), errs.String()
}

// tinyDoctor makes the doctor quick for a test.
func tinyDoctor(t *testing.T) {
	usually := verbs["doctor"]
	t.Cleanup(func() { verbs["doctor"] = usually })
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", "") // no plug-in of this machine speaks in between
	verbs["doctor"] = doctor(effort{read: 1 << 20, cube: 64, budget: time.Millisecond})
}

// TestRun_Help: help that is asked for goes to standard output.
func TestRun_Help(t *testing.T) {
	for args, want := range map[string][]string{
		"help":        {"usage: art VERB", "\n  bench  ", "\n  doctor "},
		"-h":          {"usage: art VERB"},
		"--help":      {"usage: art VERB"},
		"help doctor": {"usage: art doctor [flags]\n", "ART_CPU", "\n  --json  "},
		"doctor -h":   {"usage: art doctor [flags]\n", "\n  --json  "},
		"help bench":  {"MxKxN", "\n  --run regexp  ", "\n  --time duration  "},
	} {
		status, stdout, stderr := command(strings.Fields(args)...)
		if status != 0 || stderr != "" {
			t.Errorf("art %s: status %d, standard error %q", args, status, stderr)
		}
		for _, w := range want {
			if !strings.Contains(stdout, w) {
				t.Errorf("art %s: no %q in\n%s", args, w, stdout)
			}
		}
		checkWidth(t, stdout)
	}
}

// TestRun_BadUsage: a mistake is told on standard error, with what there is instead.
func TestRun_BadUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"art: a verb is missing", "doctor", "bench"}},
		{[]string{"docter"}, []string{`art: no verb is called "docter"`, "doctor", "bench"}},
		{[]string{"help", "docter"}, []string{`art: no verb is called "docter"`, "doctor"}},
		{[]string{"help", "doctor", "bench"}, []string{"one verb"}},
		{[]string{"doctor", "--jsn"}, []string{"art: doctor: ", "-jsn", "--json"}},
		{[]string{"doctor", "now"}, []string{`art: doctor: "now"`, "--json"}},
		{[]string{"score", "tiny", "--json", "text"}, []string{`art: score: --json is behind "tiny"`, "flags go first", "usage: art score [flags] MODEL"}},
		{[]string{"tokenize", "tiny", "-file=x"}, []string{`art: tokenize: -file=x is behind "tiny"`}},
		{[]string{"score", "tiny", "--help"}, []string{`art: score: --help is behind "tiny"`, "usage: art score [flags] MODEL"}},
		{[]string{"tokenize"}, []string{"art: tokenize: name a model"}},
		{[]string{"tokenize", "tiny", "-h"}, []string{`art: tokenize: -h is behind "tiny"`}},
		{[]string{"bench", "--time", "soon"}, []string{"art: bench: ", "soon", "--time duration"}},
		{[]string{"bench", "--time", "-1s"}, []string{"art: bench: --time -1s"}},
		{[]string{"bench", "--run", "("}, []string{"art: bench: --run: ", "missing closing"}},
		{[]string{"bench", "--run", "conv"}, []string{`art: bench: --run: no operation matches "conv"`, "softmax/256x896"}},
	} {
		status, stdout, stderr := command(c.args...)
		if status != 2 || stdout != "" {
			t.Errorf("art %q: status %d, standard output %q", c.args, status, stdout)
		}
		for _, w := range c.want {
			if !strings.Contains(stderr, w) {
				t.Errorf("art %q: no %q in\n%s", c.args, w, stderr)
			}
		}
	}
}

// TestRun_CannotWrite: output that is lost is an error.
func TestRun_CannotWrite(t *testing.T) {
	tinyDoctor(t)
	for _, args := range [][]string{{"help"}, {"doctor"}, {"doctor", "--json"}, {"bench", "--run", "sum/256"}, {"bench", "--json", "--run", "sum/256", "--time", "1ms"}} {
		var stderr bytes.Buffer
		if status := run(args, full{}, &stderr); status != 1 || !strings.Contains(stderr.String(), "full") {
			t.Errorf("art %q: status %d, standard error %q", args, status, stderr.String())
		}
	}
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

var errFull = errors.New("the disk is full")

// checkWidth checks that no line is wider than a terminal of 100 columns.
func checkWidth(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// decode reads one JSON object with nothing behind it, as a map of keys.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return object
}

// positive checks that numbers of an object are there and above 0.
func positive(t *testing.T, object map[string]any, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if x, ok := object[key].(float64); !ok || x <= 0 || x > 1e15 {
			t.Errorf("%s is %v, want a positive number", key, object[key])
		}
	}
}
