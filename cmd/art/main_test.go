package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/goart-dev/art/internal/dev/bench/devicebench"
)

// command runs the command and returns what it prints.
func command(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = runCommand(args, &out, &errs)
	return status, out.String(), errs.String()
}

// setInput sets standard input for a test.
func setInput(t *testing.T, text string) {
	t.Cleanup(func() { stdin = os.Stdin })
	stdin = strings.NewReader(text)
}

// tinyDoctor makes doctor fast for a test.
func tinyDoctor(t *testing.T) {
	t.Cleanup(func() { doctorEffort = devicebench.Usual })
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", "") // hides the plug-ins of this machine
	doctorEffort = devicebench.Effort{ReadBytes: 1 << 20, Size: 64, Budget: time.Millisecond}
}

// TestRun_Help: requested help goes to standard output.
func TestRun_Help(t *testing.T) {
	for args, want := range map[string][]string{
		"help":                      {"usage: art VERB", "\n  debug bench  ", "\n  doctor ", "\nruns: look at stored runs"},
		"-h":                        {"usage: art VERB"},
		"--help":                    {"usage: art VERB"},
		"help doctor":               {"usage: art doctor [flags]\n", "ART_CPU", "\n  --json  "},
		"doctor -h":                 {"usage: art doctor [flags]\n", "\n  --json  "},
		"help -h":                   {"usage: art VERB"},
		"help --help":               {"usage: art VERB"},
		"help help":                 {"usage: art VERB"},
		"debug tokenize tiny -h":    {"usage: art debug tokenize [flags] MODEL"},
		"debug score tiny --help a": {"usage: art debug score [flags] MODEL"},
		"help debug bench":          {"MxKxN", "\n  --run regexp  ", "\n  --time duration  "},
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

// TestHelp_Width: the help of each verb fits into a terminal.
func TestHelp_Width(t *testing.T) {
	for name := range verbs {
		status, stdout, _ := command(append([]string{"help"}, strings.Fields(name)...)...)
		if status != 0 {
			t.Errorf("help %s: status %d", name, status)
		}
		t.Run(name, func(t *testing.T) { checkWidth(t, stdout) })
	}
}

// TestRun_FlagsAnywhere: flags may come after the model. What follows -- is text.
func TestRun_FlagsAnywhere(t *testing.T) {
	want := output[map[string]any](t, "debug", "tokenize", "--json", "tiny", "a b")
	for _, args := range [][]string{{"tiny", "--json", "a b"}, {"tiny", "a", "--json", "b"},
		{"tiny", "a", "b", "-json=true"}, {"--json", "--", "tiny", "a b"}} {
		got := output[map[string]any](t, append([]string{"debug", "tokenize"}, args...)...)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", args, got, want)
		}
	}
	text := output[map[string]any](t, "debug", "tokenize", "--json", "tiny", "--", "--json")
	same := output[map[string]any](t, "debug", "tokenize", "--json", "--", "tiny", "--json")
	if !reflect.DeepEqual(text, same) || reflect.DeepEqual(text, want) {
		t.Errorf("%v, want %v", same, text)
	}
}

// TestVersion: what is known of the build is printed.
func TestVersion(t *testing.T) {
	for _, verb := range []string{"version", "--version"} {
		status, stdout, stderr := command(verb)
		if status != 0 || stderr != "" || !strings.Contains(stdout, runtime.Version()) ||
			!strings.Contains(stdout, "\ndevice   CPU") {
			t.Errorf("%s: status %d, %q, %q", verb, status, stdout, stderr)
		}
	}
	v := versionOf(&debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	})
	if text := v.text(); !strings.HasPrefix(text, "art v1.2.3\ncommit   abc, with changes\n") {
		t.Error(text)
	}
	if text := versionOf(nil).text(); !strings.HasPrefix(text, "art unknown\ncommit   unknown\n") {
		t.Error(text)
	}
	if got := output[version](t, "version", "--json"); got.Go != runtime.Version() || got.Version == "" {
		t.Errorf("%+v", got)
	}
}

// TestRun_BadUsage: a mistake is reported on standard error, with what is valid.
func TestRun_BadUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"art: a verb is missing", "doctor", "bench"}},
		{[]string{"docter"}, []string{`art: no verb is called "docter", did you mean doctor?`, "bench"}},
		{[]string{"help", "docter"}, []string{`art: no verb is called "docter"`, "doctor"}},
		{[]string{"help", "doctor", "bench"}, []string{"one verb"}},
		{[]string{"doctor", "--jsn"}, []string{"art: doctor: ", "no flag --jsn, did you mean --json?"}},
		{[]string{"doctor", "now"}, []string{`art: doctor: "now"`, "--json"}},
		{[]string{"inspct"}, []string{`no verb is called "inspct", did you mean model inspect?`}},
		{[]string{"rusn", "show"}, []string{`no verb is called "rusn", did you mean runs?`}},
		{[]string{"runs", "shwo"}, []string{`no verb is called "runs shwo", did you mean runs show?`, "usage: art runs VERB"}},
		{[]string{"runs", "exprt"}, []string{`did you mean model export?`}},
		{[]string{"help", "runs", "shwo"}, []string{`did you mean runs show?`}},
		{[]string{"help", "runs", "show", "x"}, []string{"one verb"}},
		{[]string{"model"}, []string{"art: model: a verb is missing", "usage: art model VERB"}},
		{[]string{"debug"}, []string{"art: debug: a verb is missing", "usage: art debug VERB"}},
		{[]string{"model", "--json"}, []string{`no verb is called "model --json"`}},
		{[]string{"runs", "x"}, []string{`no verb is called "runs x"`, "\n  runs list "}},
		{[]string{"runs", "--jsn"}, []string{"art: runs list: there is no flag --jsn"}},
		{[]string{"hlep"}, []string{`did you mean help?`}},
		{[]string{"help", "inspct"}, []string{`did you mean model inspect?`}},
		{[]string{"frobnicate"}, []string{"no verb is called \"frobnicate\"\n"}},
		{[]string{"debug", "score", "tiny", "--jsn", "text"}, []string{`art: debug score: there is no flag --jsn, did you mean --json? (write -- before`, "usage: art debug score"}},
		{[]string{"debug", "generate", "tiny", "--temprature=1", "a"}, []string{`there is no flag --temprature, did you mean --temperature?`}},
		{[]string{"debug", "tokenize", "tiny", "-5"}, []string{`there is no flag --5 (write -- before text that begins with -)`}},
		{[]string{"debug", "tokenize"}, []string{"art: debug tokenize: name a model"}},
		{[]string{"debug", "bench", "device", "--time", "soon"}, []string{"art: debug bench: ", "soon", "--time duration"}},
		{[]string{"debug", "bench", "device", "--time", "-1s"}, []string{"art: debug bench: --time -1s"}},
		{[]string{"debug", "bench", "device", "--run", "("}, []string{"art: debug bench: --run: ", "missing closing"}},
		{[]string{"debug", "bench", "device", "--run", "conv"}, []string{`art: debug bench: --run: no operation matches "conv"`, "softmax/256x896"}},
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

// TestRun_Moved: a verb without its group, or with another one, is an error that prints the command as it has to be.
func TestRun_Moved(t *testing.T) {
	for name := range verbs {
		group, own := splitName(name)
		for _, wrong := range []string{"", "runs", "model", "debug"} {
			if wrong == group {
				continue
			}
			args := append(strings.Fields(wrong), own, "a b", "it's", "", "--step=3", "x@best")
			status, stdout, stderr := command(args...)
			if want := "it is\n\n  art " + name + ` 'a b' 'it'\''s' '' --step=3 x@best` + "\n"; status != 2 || stdout != "" ||
				!strings.HasPrefix(stderr, "art: there is no art "+strings.Join(args[:len(args)-5], " ")+": ") ||
				!strings.HasSuffix(stderr, want) {
				t.Errorf("art %q: status %d, %s", args, status, stderr)
			}
		}
	}
	status, _, stderr := command("help", "show")
	if status != 2 || !strings.HasSuffix(stderr, "\n  art help runs show\n") {
		t.Errorf("art help show: status %d, %s", status, stderr)
	}
}

// TestRun_CannotWrite: lost output is an error.
func TestRun_CannotWrite(t *testing.T) {
	tinyDoctor(t)
	for _, args := range [][]string{
		{"help"}, {"doctor"}, {"doctor", "--json"}, {"debug", "bench", "device", "--run", "sum/256"},
		{"debug", "bench", "device", "--json", "--run", "sum/256", "--time", "1ms"},
	} {
		var stderr bytes.Buffer
		if status := runCommand(args, full{}, &stderr); status != 1 || !strings.Contains(stderr.String(), "full") {
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

// decode reads one JSON object with nothing after it, as a map.
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
