// Command art fetches, inspects, serves and exports models, trains them on examples or from the description of a task,
// shows and compares runs, in the terminal and on a web page, and says what a machine can do.
//
//	go install github.com/goart-dev/art/cmd/art@latest
//	art help
//
// Each verb is a file that registers itself in the variable verbs.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

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
	if _, prefixed := err.(*art.Error); !prefixed {
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

// dispatch runs the verb that the first argument names.
func dispatch(args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return badUsage("a verb is missing\n\n%s", overview())
	}
	switch name := args[0]; name {
	case "help", "-h", "-help", "--help":
		return help(args[1:], stdout)
	case "-version", "--version":
		return verbs["version"].execute("version", args[1:], stdout, stderr)
	default:
		v, ok := verbs[name]
		if !ok {
			return unknownVerb(name)
		}
		return v.execute(name, args[1:], stdout, stderr)
	}
}
