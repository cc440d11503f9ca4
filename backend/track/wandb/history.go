package wandb

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art/internal/track"
)

// keyStep is the x-axis, as in ART.
const keyStep = "training_step"

// history makes the rows of a run.
type history struct {
	names    names
	start    time.Time
	next     int            // _step of the next row
	sections []string       // whose metrics are defined, in order
	summary  map[string]any // the last value of each key
}

func newHistory(own bool, start time.Time) *history {
	return &history{names: names{own}, start: start, summary: map[string]any{}}
}

// row returns a row of W&B: values by key, with W&B's own keys.
func (h *history) row(at time.Time, step int, values map[string]any) map[string]any {
	row := map[string]any{
		keyStep: step, "_step": h.next, "_timestamp": float64(at.UnixMilli()) / 1e3,
		"_runtime": max(0, at.Sub(h.start).Seconds()),
	}
	maps.Copy(row, values)
	h.next++
	maps.Copy(h.summary, row)
	return row
}

// values translates metrics.
func (h *history) values(metrics map[string]float64) map[string]any {
	out := make(map[string]any, len(metrics))
	for key, x := range metrics {
		out[h.names.out(key)] = number(x)
	}
	return out
}

// number returns what W&B stores of a number: text where JSON has none.
func number(x float64) any {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	return x
}

// numberOf is the inverse of number.
func numberOf(v any) (x float64, ok bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		switch v {
		case "NaN":
			return math.NaN(), true
		case "Infinity":
			return math.Inf(1), true
		case "-Infinity":
			return math.Inf(-1), true
		}
	}
	return 0, false
}

// define returns the globs of the sections that are new in a row.
func (h *history) define(row map[string]any) []string {
	var globs []string
	for _, key := range slices.Sorted(maps.Keys(row)) {
		section, _, ok := strings.Cut(key, "/")
		if ok && !slices.Contains(h.sections, section) {
			h.sections = append(h.sections, section)
			globs = append(globs, section+"/*")
		}
	}
	return globs
}

// read takes a row that an earlier process has stored, and adds its metrics to values.
func (h *history) read(row map[string]any, values track.Values) {
	at, okAt := row["_timestamp"].(float64)
	if passed, ok := row["_runtime"].(float64); ok && okAt {
		h.start = time.UnixMilli(int64((at - passed) * 1e3)) // the same of each row
	}
	if n, ok := row["_step"].(float64); ok {
		h.next = max(h.next, int(n)+1)
	}
	maps.Copy(h.summary, row)
	step, ok := row[keyStep].(float64)
	if !ok {
		return
	}
	metrics := values[int(step)]
	if metrics == nil {
		metrics = map[string]float64{}
		values[int(step)] = metrics
	}
	for key, v := range row {
		if x, ok := numberOf(v); ok && key != keyStep && !strings.HasPrefix(key, "_") {
			metrics[h.names.in(key)] = x
		}
	}
}
