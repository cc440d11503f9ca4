package dash

import (
	"cmp"
	"encoding/csv"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// csv is every value of one metric of a run, or of all.
func (h *Handler) csv(r *http.Request) (name, text string, err error) {
	p := paramsOf(r)
	found, err := h.store.find(p.Get("run"))
	if err != nil {
		return "", "", err
	}
	keys := metricsOf([]*run{found})
	if key := p.Get("metric"); key != "" {
		if !slices.Contains(keys, key) {
			return "", "", notFound("%s has no metric %q", found.name, key)
		}
		keys = []string{key}
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(append([]string{"split", "step"}, keys...)) // a strings.Builder has no errors
	for _, row := range found.rows {
		line, any := []string{row.Split, strconv.Itoa(row.Step)}, false
		for _, key := range keys {
			value, ok := row.Metrics[key]
			cell := ""
			if ok {
				cell, any = strconv.FormatFloat(value, 'g', -1, 64), true
			}
			line = append(line, cell)
		}
		if any {
			_ = w.Write(line)
		}
	}
	w.Flush()
	return "metrics.csv", b.String(), nil
}

// sortedKeys are the keys of a map, in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
