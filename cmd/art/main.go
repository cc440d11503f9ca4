// Command art fetches, inspects, serves and exports models, trains them on examples or from the description of a task,
// shows and compares runs, in the terminal and on a web page, and says what a machine can do.
//
//	go install github.com/goart-dev/art/cmd/art@latest
//	art help
//
// Each verb registers itself in the variable verbs. Those of a group have names of two words, such as runs show.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

func main() { os.Exit(runCommand(os.Args[1:], os.Stdout, os.Stderr)) }

// runCommand executes the command and returns its exit status: 0, 1 when a verb fails, and 2 when the arguments are
// invalid.
func runCommand(args []string, stdout, stderr io.Writer) int {
	err := dispatch(args, stdout, stderr)
	if err == nil {
		return 0
	}
	if _, prefixed := err.(*art.Error); !prefixed { //nolint:errorlint // of the outermost error only
		err = fmt.Errorf("art: %w", err)
	}
	fmt.Fprintln(stderr, err)
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

// usageError is a mistake in the arguments. Its text says what is valid.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// badUsage returns a usageError.
func badUsage(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// dispatch runs the verb that the first arguments name, in one word or two.
func dispatch(args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return badUsage("a verb is missing\n\n%s", overview())
	}
	first, rest := args[0], args[1:]
	if helpWords[first] {
		return help(rest, stdout)
	}
	if first == "-version" || first == "--version" {
		first = "version"
	}
	name := first
	if g, ok := findGroup(first); ok {
		switch {
		case len(rest) > 0 && helpWords[rest[0]]:
			return help(append([]string{first}, rest[1:]...), stdout)
		case g.alone != "" && (len(rest) == 0 || strings.HasPrefix(rest[0], "-")):
			rest = append([]string{g.alone}, rest...)
		case len(rest) == 0:
			return badUsage("%s: a verb is missing\n\n%s", first, g.help())
		}
		name, rest = first+" "+rest[0], rest[1:]
	}
	v, ok := verbs[name]
	if !ok {
		return unknownVerb(nil, name, rest)
	}
	return v.execute(name, rest, stdout, stderr)
}

// verb is a subcommand, which the first argument names, or the first two for a verb of a group.
type verb struct {
	summary string // one line
	args    string // the arguments after the flags, as help prints them; empty: none
	text    string // the body of the help, in lines of up to 100 columns
	runs    bool   // it looks runs up, or makes them: it has --dir

	// define adds the flags and returns the action, which reads them after parsing.
	define func(flags *flag.FlagSet) action
}

// action runs a verb. Results go to stdout; the caller prints the error.
type action func(args []string, stdout, stderr io.Writer) error

// verbs by name. One of a group has the name of the group before its own: "runs show".
var verbs = map[string]verb{}

// groups of verbs, in the order of the help.
var groups = []group{
	{name: "runs", summary: "look at stored runs, compare them, go on from them", alone: "list"},
	{name: "model", summary: "models to train and to serve"},
	{name: "debug", summary: "a model token by token, and its speed"},
}

// group is a word before verbs of one subject.
type group struct {
	name, summary string
	alone         string // the verb that the group alone stands for; empty: none
}

// findGroup returns the group of a name.
func findGroup(name string) (g group, ok bool) {
	i := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
	if i < 0 {
		return group{}, false
	}
	return groups[i], true
}

// flags returns the flag set of a verb, which prints nothing itself, and its action.
func (v verb) flags(name string) (*flag.FlagSet, action) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if v.runs {
		defineRunsDir(flags)
	}
	return flags, v.define(flags)
}

// defineRunsDir adds --dir.
func defineRunsDir(flags *flag.FlagSet) {
	flags.StringVar(&runsDir, "dir", "", "`folder` of the runs; default: $ART_DIR, or .art")
}

// execute parses the flags of a verb and runs it.
func (v verb) execute(name string, args []string, stdout, stderr io.Writer) error {
	flags, act := v.flags(name)
	rest, err := parse(flags, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return write(stdout, v.help(name))
	case err != nil:
		return badUsage("%s: %v\n\n%s", name, explain(err, flags), v.help(name))
	case v.args == "" && len(rest) > 0:
		return badUsage("%s: %q: it takes flags only\n\n%s", name, rest[0], v.help(name))
	}
	if err := act(rest, stdout, stderr); err != nil {
		return &art.Error{Op: name, Err: err}
	}
	return nil
}

// parse reads flags before, between and after other arguments, which it returns. After "--" there are no flags.
func parse(flags *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		left := flags.Args()
		read := len(args) - len(left)
		if len(left) == 0 || read > 0 && args[read-1] == "--" {
			return append(rest, left...), nil
		}
		rest, args = append(rest, left[0]), left[1:]
	}
}
