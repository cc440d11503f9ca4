package main

import (
	"errors"
	"flag"
	"io"
	"slices"

	"github.com/goart-dev/art"
)

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
