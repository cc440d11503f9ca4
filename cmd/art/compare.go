package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"math"
	"path"
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
	for i, name := range names {
		r, _, err := findRun(name)
		if err != nil {
			return err
		}
		if histories[i], err = r.History(); err != nil {
			return err
		}
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "newest (highest)\t%s\t\n", strings.Join(names, "\t"))
	out := map[string]comparison{}
	for _, key := range loggedMetrics(histories...) {
		c := comparison{map[string]float64{}, map[string]float64{}}
		fmt.Fprintf(table, "%s\t", key)
		for i, name := range names {
			newest, highest := extremes(histories[i], key)
			if math.IsNaN(newest) {
				fmt.Fprint(table, "-\t")
				continue
			}
			c.Newest[name], c.Highest[name] = newest, highest
			fmt.Fprintf(table, "%.4g (%.4g)\t", newest, highest)
		}
		fmt.Fprintln(table)
		out[key] = c
	}
	_ = table.Flush() // a strings.Builder has no errors
	return writeResult(stdout, asJSON, out, text.String())
}

// comparison are the values of a metric, by run.
type comparison struct {
	Newest  map[string]float64 `json:"newest"`
	Highest map[string]float64 `json:"highest"`
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

// checkMetrics returns an error for the first of the metrics of a flag that is in none of the histories: a name that
// was misspelt is not a curve without points.
func checkMetrics(flag string, keys []string, histories ...[]art.HistoryRow) error {
	logged := loggedMetrics(histories...)
	for _, key := range keys {
		if !slices.Contains(logged, key) {
			return fmt.Errorf("--%s %s: %s", flag, key, notLogged(key, logged))
		}
	}
	return nil
}

// loggedMetrics are the names of all metrics of histories, in order.
func loggedMetrics(histories ...[]art.HistoryRow) []string {
	seen := map[string]bool{}
	for _, rows := range histories {
		for _, row := range rows {
			for key := range row.Metrics {
				seen[key] = true
			}
		}
	}
	return sortedKeys(seen)
}

// notLogged says that a metric was not logged, and which names come close: those of other splits, or one that is spelt
// alike.
func notLogged(key string, logged []string) string {
	if len(logged) == 0 {
		return "nothing is logged yet"
	}
	var others []string
	for _, name := range logged {
		if strings.EqualFold(path.Base(name), path.Base(key)) {
			others = append(others, name)
		}
	}
	switch {
	case len(others) > 1:
		last := len(others) - 1
		return fmt.Sprintf("nothing has logged it; there are %s and %s", strings.Join(others[:last], ", "), others[last])
	case len(others) == 1:
		return "nothing has logged it; there is " + others[0]
	}
	near := suggest("", key, logged)
	if near == "" && !strings.Contains(key, "/") {
		var short []string
		for _, name := range logged {
			short = append(short, path.Base(name))
		}
		if i := slices.Index(short, closest(key, short)); i >= 0 {
			near = suggest("", logged[i], logged)
		}
	}
	return "nothing has logged it" + cmp.Or(near, "; art runs compare lists the metrics of runs")
}
