// Command art fetches, inspects, serves and exports models, trains them on examples or from the description of a task,
// shows and compares runs, in the terminal and on a web page, and says what a machine can do.
//
//	go install github.com/goart-dev/art/cmd/art@latest
//	art help
//
// Each verb is a file that registers itself in the variable verbs. Those of a group have names of two words, such as
// runs show.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
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
