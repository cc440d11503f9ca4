package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

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
	var names []string
	for _, rows := range histories {
		for _, row := range rows {
			for key := range row.Metrics {
				if !seen[key] {
					seen[key] = true
					names = append(names, key)
				}
			}
		}
	}
	slices.Sort(names)
	return names
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
	if near == "" {
		near = "; art runs compare lists the metrics of runs"
	}
	return "nothing has logged it" + near
}
