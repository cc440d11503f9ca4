package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func init() {
	verbs["runs sweep"] = verb{
		summary: "run a training program over seeds and settings",
		args:    "-- COMMAND [ARGUMENT...]",
		text: `
Runs a command once for each seed and each combination of settings, and compares what the runs
have logged in a table and a plot. {seed}, {dir} and the names of settings, in braces, are
replaced in the arguments. {dir} is a folder of the trial; the program has to keep its run in it.

  art runs sweep --seeds 3 --set rate=3e-4,1e-3 -- \
    go run ./examples/tictactoe -steps 20 -seed {seed} -rate {rate} -dir {dir}

Each trial has a folder below --out, with what it printed in output.txt. A trial that has ended
well is not run again, so that the same command continues an interrupted sweep, and adds seeds or
settings to a finished one. The program itself is expected to resume its run. A trial that fails
does not end the others.

The table has a line for each combination: the mean over its seeds of the newest and of the
highest value of each metric, with the 95 % confidence interval by Student's t. It is printed, and
kept below --out in sweep.md, as Markdown; the plot is sweep.svg. Trials that run at once share the
cores: with --parallel, limit the program, for example by GOMAXPROCS=1.
`,
		define: func(flags *flag.FlagSet) action {
			s := sweep{settings: settings{}}
			flags.IntVar(&s.seeds, "seeds", 1, "so `many` seeds, from 1 on")
			flags.Var(&s.settings, "set", "`NAME=VALUE,VALUE...`: a setting; may be given several times")
			flags.IntVar(&s.parallel, "parallel", 1, "run so `many` trials at once")
			flags.StringVar(&s.out, "out", "sweep", "`folder` of the trials, the table and the plot")
			flags.StringVar(&s.metrics, "metric", "val/reward", "`names` of metrics, with commas between them")
			flags.BoolVar(&s.percent, "percent", false, "draw values from 0 to 1 as percents")
			flags.BoolVar(&s.dry, "dry-run", false, "print the commands that would be run")
			return s.run
		},
	}
}

// setting is a name and its values.
type setting struct {
	name   string
	values []string
}

// settings are the values of --set.
type settings []setting

// String implements flag.Value.
func (s *settings) String() string { return "" }

// Set implements flag.Value.
func (s *settings) Set(text string) error {
	name, values, ok := strings.Cut(text, "=")
	switch {
	case !ok || !settingName.MatchString(name):
		return errors.New("want NAME=VALUE, with commas between several values")
	case name == "seed" || name == "dir":
		return fmt.Errorf("{%s} has a meaning of its own", name)
	case slices.ContainsFunc(*s, func(other setting) bool { return other.name == name }):
		return fmt.Errorf("%s is set twice", name)
	}
	*s = append(*s, setting{name, strings.Split(values, ",")})
	return nil
}

var (
	settingName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	placeholder = regexp.MustCompile(`\{([A-Za-z][A-Za-z0-9_-]*)\}`)
	unsafeChars = regexp.MustCompile(`[^A-Za-z0-9=,._+-]`)
)

// sweep is the verb runs sweep with its flags.
type sweep struct {
	seeds, parallel int
	settings        settings
	out, metrics    string
	percent, dry    bool
}

// trial is one run of the program.
type trial struct {
	Values  []string `json:"values"` // of the settings, in their order
	Seed    int      `json:"seed"`
	Command []string `json:"command"`
	Seconds float64  `json:"seconds"`

	dir string
}

func (s *sweep) run(args []string, stdout, stderr io.Writer) error {
	if err := s.check(args); err != nil {
		return err
	}
	// All combinations, the seeds of one after the other.
	combinations := [][]string{nil}
	for _, x := range s.settings {
		var longer [][]string
		for _, c := range combinations {
			for _, value := range x.values {
				longer = append(longer, append(slices.Clone(c), value))
			}
		}
		combinations = longer
	}
	var trials []*trial
	for _, values := range combinations {
		for seed := 1; seed <= s.seeds; seed++ {
			t := s.trial(args, values, seed)
			if slices.ContainsFunc(trials, func(other *trial) bool { return other.dir == t.dir }) { // it would count twice
				return badUsage("two trials have the folder %s: give each value of --set once, and values that differ in "+
					"letters, digits or =,._+-", t.dir)
			}
			trials = append(trials, t)
		}
	}
	if s.dry {
		for _, t := range trials {
			if err := write(stdout, strings.Join(t.Command, " ")+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed := s.runAll(ctx, trials, stderr)
	return errors.Join(s.report(trials, stdout), failed)
}

// check returns a usage error for flags or a command that make no sense.
func (s *sweep) check(args []string) error {
	switch {
	case len(args) == 0:
		return badUsage("want a command after --")
	case s.seeds < 1:
		return badUsage("--seeds %d: want at least 1", s.seeds)
	case s.parallel < 1:
		return badUsage("--parallel %d: want at least 1", s.parallel)
	}
	wanted := []string{"dir"}
	if s.seeds > 1 {
		wanted = append(wanted, "seed")
	}
	for _, x := range s.settings {
		wanted = append(wanted, x.name)
	}
	var used []string
	for _, match := range placeholder.FindAllStringSubmatch(strings.Join(args, " "), -1) {
		if name := match[1]; !slices.Contains(append(wanted, "seed"), name) {
			return badUsage("{%s}: no --set gives it a value", name)
		}
		used = append(used, match[1])
	}
	for _, name := range wanted {
		if !slices.Contains(used, name) {
			return badUsage("the command has no {%s}: trials would not differ in it", name)
		}
	}
	return nil
}

// trial returns the trial of some values and a seed.
func (s *sweep) trial(args, values []string, seed int) *trial {
	t := &trial{Values: values, Seed: seed}
	name := strings.Join(append(s.pairs(values), "seed="+strconv.Itoa(seed)), ",")
	t.dir = filepath.Join(s.out, unsafeChars.ReplaceAllString(name, "_"))
	replace := map[string]string{"seed": strconv.Itoa(seed), "dir": t.runs()}
	for i, x := range s.settings {
		replace[x.name] = values[i]
	}
	for _, arg := range args {
		t.Command = append(t.Command, placeholder.ReplaceAllStringFunc(arg, func(match string) string {
			return replace[strings.Trim(match, "{}")]
		}))
	}
	return t
}

// runs is the folder in which the program of a trial keeps its runs.
func (t *trial) runs() string { return filepath.Join(t.dir, "runs") }

// done is the file that says that a trial has ended well.
func (t *trial) done() string { return filepath.Join(t.dir, "done.json") }

// isDone reports whether the trial has ended well in an earlier sweep, with the same command.
func (t *trial) isDone() (bool, error) {
	data, err := os.ReadFile(t.done())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	var before trial
	if err == nil {
		err = json.Unmarshal(data, &before)
	}
	if err != nil {
		return false, err
	}
	if !slices.Equal(before.Command, t.Command) {
		return false, fmt.Errorf("%s was made by another command, %q; take another --out, or delete it", t.dir,
			strings.Join(before.Command, " "))
	}
	t.Seconds = before.Seconds
	return true, nil
}

// runAll runs what is not done, and returns what failed.
func (s *sweep) runAll(ctx context.Context, trials []*trial, stderr io.Writer) error {
	var mu sync.Mutex // of stderr
	errs := make([]error, len(trials))
	next := make(chan int)
	var workers sync.WaitGroup
	for range s.parallel {
		workers.Go(func() {
			for i := range next {
				what, err := trials[i].run(ctx)
				if err != nil {
					what = err.Error()
					errs[i] = fmt.Errorf("%s: %w", trials[i].dir, err)
				}
				mu.Lock()
				fmt.Fprintf(stderr, "%d/%d %s: %s\n", i+1, len(trials), filepath.Base(trials[i].dir), what)
				mu.Unlock()
			}
		})
	}
	for i := range trials {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	workers.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

// run runs the program, unless it has ended well before, and says what happened.
func (t *trial) run(ctx context.Context) (what string, err error) {
	if done, err := t.isDone(); done || err != nil {
		return "done before", err
	}
	if err := os.MkdirAll(t.runs(), 0o755); err != nil {
		return "", err
	}
	output, err := os.OpenFile(filepath.Join(t.dir, "output.txt"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return "", err
	}
	start := time.Now()
	program := exec.CommandContext(ctx, t.Command[0], t.Command[1:]...)
	program.Stdout, program.Stderr = output, output
	program.Cancel = func() error { return program.Process.Signal(os.Interrupt) }
	program.WaitDelay = 30 * time.Second
	err = program.Run()
	t.Seconds = time.Since(start).Seconds()
	if err = errors.Join(err, output.Close()); err != nil {
		return "", fmt.Errorf("%w; output.txt has what it printed", err)
	}
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return "", err
	}
	return "done in " + durationText(time.Duration(t.Seconds*float64(time.Second))),
		os.WriteFile(t.done(), append(data, '\n'), 0o644)
}

// pairs are the settings with some values.
func (s *sweep) pairs(values []string) (list []string) {
	for i, x := range s.settings {
		list = append(list, x.name+"="+values[i])
	}
	return list
}
