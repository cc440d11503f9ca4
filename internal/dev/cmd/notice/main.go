// Command notice lists the modules that are compiled into the command art, with their licences:
//
//	go run ./internal/dev/cmd/notice NOTICE           # check the file
//	go run ./internal/dev/cmd/notice -update NOTICE   # write it
//	go run ./internal/dev/cmd/notice -texts FILE      # write the licences and notices in full, for a release
//
// It fails for a licence that is not known to permit redistribution under the Apache licence of art.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	update := flag.Bool("update", false, "write the list")
	texts := flag.Bool("texts", false, "write the licences in full instead of the list")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: notice [-update|-texts] FILE")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *update, *texts); err != nil {
		fmt.Fprintln(os.Stderr, "notice:", err)
		os.Exit(1)
	}
}

// run writes or checks a file.
func run(file string, update, texts bool) error {
	modules, err := compiledModules()
	if err != nil {
		return err
	}
	if texts {
		return os.WriteFile(file, fullTexts(modules), 0o644)
	}
	list := []byte(noticeOf(modules))
	if update {
		return os.WriteFile(file, list, 0o644)
	}
	stored, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Equal(stored, list) {
		return errors.New(file + " is not current; run: go run ./internal/dev/cmd/notice -update " + file)
	}
	return nil
}
