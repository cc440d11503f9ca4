package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/goart-dev/art"
)

func init() {
	verbs["runs compare"] = verb{
		summary: "the newest and the best value of each metric, side by side",
		args:    "RUN RUN...",
		runs:    true,
		text: `
Prints the newest value of each metric that the runs have logged, and the highest in parentheses.

` + runNames,
		define: func(flags *flag.FlagSet) action {
			asJSON := flags.Bool("json", false, "print JSON")
			return func(args []string, stdout, _ io.Writer) error { return compareRuns(args, *asJSON, stdout) }
		},
	}
}

// compareRuns prints the newest and the best value of each metric of some runs.
func compareRuns(names []string, asJSON bool, stdout io.Writer) error {
	if len(names) < 2 {
		return badUsage("want two of RUN or more")
	}
	histories := make([][]art.HistoryRow, len(names))
	keys := map[string]bool{}
	for i, name := range names {
		r, _, err := findRun(name)
		if err != nil {
			return err
		}
		if histories[i], err = r.History(); err != nil {
			return err
		}
		for _, row := range histories[i] {
			for key := range row.Metrics {
				keys[key] = true
			}
		}
	}
	sorted := make([]string, 0, len(keys))
	for key := range keys {
		sorted = append(sorted, key)
	}
	slices.Sort(sorted)
	if asJSON {
		return writeJSON(stdout, compared(names, histories, sorted))
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "newest (highest)\t%s\t\n", strings.Join(names, "\t"))
	for _, key := range sorted {
		fmt.Fprintf(table, "%s\t", key)
		for _, rows := range histories {
			newest, highest := extremes(rows, key)
			if math.IsNaN(newest) {
				fmt.Fprint(table, "-\t")
				continue
			}
			fmt.Fprintf(table, "%.4g (%.4g)\t", newest, highest)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// comparison are the values of a metric, by run.
type comparison struct {
	Newest  map[string]float64 `json:"newest"`
	Highest map[string]float64 `json:"highest"`
}

func compared(names []string, histories [][]art.HistoryRow, keys []string) map[string]comparison {
	out := map[string]comparison{}
	for _, key := range keys {
		c := comparison{map[string]float64{}, map[string]float64{}}
		for i, name := range names {
			if newest, highest := extremes(histories[i], key); !math.IsNaN(newest) {
				c.Newest[name], c.Highest[name] = newest, highest
			}
		}
		out[key] = c
	}
	return out
}

// extremes returns the value of the last row that has a metric, and the highest; NaN for none.
func extremes(rows []art.HistoryRow, key string) (newest, highest float64) {
	newest, highest = math.NaN(), math.Inf(-1)
	for _, row := range rows {
		if value, ok := row.Metrics[key]; ok && !math.IsNaN(value) {
			newest, highest = value, max(highest, value)
		}
	}
	return newest, highest
}
