// Command apicheck compares the exported API of a module with that of its last release:
//
//	go run ./internal/dev/cmd/apicheck . internal/dev/release/api/art.txt
//	go run ./internal/dev/cmd/apicheck -update . internal/dev/release/api/art.txt
//
// It fails when a line of the file is no longer true: a name is gone, or has another type, value or method. What is
// new is listed and does not fail. Packages in internal, cmd and examples are left out, all but examples/agents with
// auto and mcp. The form is that of the files in $GOROOT/api, with one line for each name, field and method, so that a
// change of the API can be read in a diff.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() {
	update := flag.Bool("update", false, "write the file")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: apicheck [-update] MODULE FILE")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), flag.Arg(1), *update, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "apicheck:", err)
		os.Exit(1)
	}
}

// run compares the module in a folder with a file, or writes the file.
func run(module, file string, update bool, out io.Writer) error {
	now, err := apiOf(module)
	if err != nil {
		return err
	}
	if update {
		return os.WriteFile(file, []byte(strings.Join(now, "\n")+"\n"), 0o644)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	gone, added := compare(strings.Split(strings.TrimSpace(string(content)), "\n"), now)
	for _, line := range added {
		fmt.Fprintln(out, "+", line)
	}
	for _, line := range gone {
		fmt.Fprintln(out, "-", line)
	}
	if len(gone) > 0 {
		return fmt.Errorf("%d lines of %s are no longer true, see above. If that is meant, say in CHANGELOG.md "+
			"how to migrate, and run: go run ./internal/dev/cmd/apicheck -update %s %s", len(gone), file, module, file)
	}
	return nil
}

// compare returns the lines that are only in one of two sorted lists.
func compare(before, now []string) (gone, added []string) {
	for _, line := range before {
		if _, found := slices.BinarySearch(now, line); !found {
			gone = append(gone, line)
		}
	}
	for _, line := range now {
		if _, found := slices.BinarySearch(before, line); !found {
			added = append(added, line)
		}
	}
	return gone, added
}
