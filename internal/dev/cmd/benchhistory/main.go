// Command benchhistory follows the speed of the CPU device from release to release:
//
//	art debug bench device --json > internal/dev/release/bench/v0.1.0/MACHINE.json
//	go run ./internal/dev/cmd/benchhistory plot internal/dev/release/bench
//	go run ./internal/dev/cmd/benchhistory compare OLD NEW
//
// The first line stores a release; MACHINE is a name for the kind of machine. plot draws MACHINE.svg into the folder,
// for each machine that has measured several releases. compare runs two builds of the command art in turns, and fails
// when the new one is slower beyond noise.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "benchhistory:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("benchhistory", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "compare: how often each of the two is run")
	operations := flags.String("run", "", "compare: a regular expression of operations; all when empty")
	duration := flags.String("time", "200ms", "compare: of each measurement")
	if len(args) > 0 {
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		switch {
		case args[0] == "plot" && flags.NArg() == 1:
			return plotReleases(flags.Arg(0), out)
		case args[0] == "compare" && flags.NArg() == 2 && *rounds > 0:
			bench := []string{"debug", "bench", "device", "--json", "--time", *duration, "--run", *operations}
			return compare(flags.Arg(0), flags.Arg(1), bench, *rounds, out)
		}
	}
	return fmt.Errorf("usage: benchhistory plot FOLDER | compare [-rounds 5] [-run REGEXP] [-time 200ms] OLD NEW")
}
