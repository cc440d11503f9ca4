// Command art tells what a machine can do for the library, and measures it.
//
//	go run ./cmd/art help
//
// A verb is a file of this folder that puts itself into [verbs].
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes the command and returns its exit status: 0, 1 when a verb fails, and 2 when the arguments make no sense.
func run(args []string, stdout, stderr io.Writer) int {
	err := dispatch(args, stdout, stderr)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "art: %v\n", err)
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

// usageError is a mistake in the arguments. It says what there is instead.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// badUsage returns a mistake in the arguments.
func badUsage(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// dispatch runs the verb that the first argument names.
func dispatch(args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return badUsage("a verb is missing\n\n%s", overview())
	}
	switch name := args[0]; name {
	case "help", "-h", "-help", "--help":
		return help(args[1:], stdout)
	default:
		v, ok := verbs[name]
		if !ok {
			return unknownVerb(name)
		}
		return v.execute(name, args[1:], stdout, stderr)
	}
}

// execute parses the flags of a verb and runs it.
func (v verb) execute(name string, args []string, stdout, stderr io.Writer) error {
	flags, act := v.flags(name)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return write(stdout, v.help(name))
	case err != nil:
		return badUsage("%s: %v\n\n%s", name, err, v.help(name))
	case misplaced(flags, args) != "":
		return badUsage("%s: %s is behind %q: flags go first; write -- before arguments that look like flags\n\n%s", name, misplaced(flags, args), flags.Arg(0), v.help(name))
	case v.args == "" && flags.NArg() > 0:
		return badUsage("%s: %q: it takes flags only\n\n%s", name, flags.Arg(0), v.help(name))
	}
	if err := act(flags.Args(), stdout, stderr); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// misplaced returns an argument that looks like one of the flags and stands behind what is none, where package flag does not
// read it. A "--" before the arguments says that none of them is a flag.
func misplaced(flags *flag.FlagSet, args []string) string {
	if first := len(args) - flags.NArg(); first > 0 && args[first-1] == "--" {
		return ""
	}
	for _, arg := range flags.Args() {
		name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		if strings.HasPrefix(arg, "-") && (flags.Lookup(name) != nil || name == "h" || name == "help") {
			return arg
		}
	}
	return ""
}

// write writes a text.
func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}
