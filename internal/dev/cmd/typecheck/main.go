// Command typecheck checks the types of the packages of this module and of their tests as other systems and processors
// compile them, without cgo:
//
//	go run ./internal/dev/cmd/typecheck linux/arm64 windows/amd64
//
// It takes seconds for a platform; go vet, which finds more, compiles the standard library and all dependencies first.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/goart-dev/art/internal/dev/cmd/source"
)

func main() {
	if len(os.Args) == 1 {
		fmt.Fprintln(os.Stderr, "usage: typecheck GOOS/GOARCH...")
		os.Exit(2)
	}
	if err := check(".", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// check checks the module in a folder for platforms, and returns all errors of its packages.
func check(dir string, platforms []string) error {
	var errs []error
	loader := source.NewLoader()
	for _, platform := range platforms {
		goos, goarch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("%s: want GOOS/GOARCH, such as linux/arm64", platform)
		}
		packages, err := loader.Load(dir, goos, goarch, true)
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		for _, p := range packages {
			for _, err := range p.Errs {
				errs = append(errs, fmt.Errorf("%s: %w", platform, err))
			}
		}
	}
	return errors.Join(errs...)
}
