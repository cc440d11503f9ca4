package runs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// The keys of a row that are not metrics. They have no slash, and the keys of metrics do.
const (
	keySplit        = "split"
	keyStep         = "step"
	keyTrainingStep = "training_step" // equal to step; ART's name for it
	keyRecordedAt   = "recorded_at"   // RFC 3339
	keyGroups       = "groups"        // of trajectories, committed with the row; absent for none
)

// keyWallClock is the metric of the time since the run began, in seconds.
const keyWallClock = "time/wall_clock_sec"

// encodeRow returns a row as JSON with sorted keys, without a newline.
//
// JSON has no numbers that are not finite: such a metric is the string "NaN", "Infinity" or "-Infinity".
func encodeRow(row historyRow, recorded time.Time) ([]byte, error) {
	fields := map[string]any{
		keySplit:        row.Split,
		keyStep:         row.Step,
		keyTrainingStep: row.Step,
		keyRecordedAt:   recorded.UTC().Format(time.RFC3339Nano),
	}
	if row.groups > 0 {
		fields[keyGroups] = row.groups
	}
	for key, value := range row.Metrics {
		fields[key] = jsonFloat(value)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(fields)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// decodeRow is the inverse of encodeRow. Fields that are neither numbers nor such strings are ignored.
func decodeRow(line []byte) (row historyRow, recorded time.Time, err error) {
	var fields map[string]any
	if err := json.Unmarshal(line, &fields); err != nil {
		return row, recorded, err
	}
	var ok bool
	if row.Step, ok = parseCount(fields[keyStep]); !ok {
		return row, recorded, fmt.Errorf("%q is not a step", fields[keyStep])
	}
	row.groups, _ = parseCount(fields[keyGroups]) // optional
	row.Split, _ = fields[keySplit].(string)
	if err := checkName("split", row.Split); err != nil {
		return row, recorded, err
	}
	text, _ := fields[keyRecordedAt].(string)
	recorded, _ = time.Parse(time.RFC3339, text) // optional
	for _, key := range []string{keySplit, keyStep, keyTrainingStep, keyRecordedAt, keyGroups} {
		delete(fields, key)
	}
	row.Metrics = map[string]float64{}
	for key, value := range fields {
		if f, ok := parseFloat(value); ok {
			row.Metrics[key] = f
		}
	}
	return row, recorded, nil
}

// parseCount returns a JSON number that is a non-negative integer.
func parseCount(v any) (n int, ok bool) {
	f, ok := v.(float64)
	if !ok || f < 0 || f > math.MaxInt32 || f != math.Trunc(f) {
		return 0, false
	}
	return int(f), true
}

// jsonFloat returns a float64, or a string for one that is not finite.
func jsonFloat(f float64) any {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return f
}

// parseFloat is the inverse of jsonFloat.
func parseFloat(v any) (f float64, ok bool) {
	switch v {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	}
	f, ok = v.(float64)
	return f, ok
}

// rowMetrics prefixes keys without a slash with the split: "reward" becomes "train/reward", "loss/policy" stays.
func rowMetrics(split string, metrics map[string]float64) (map[string]float64, error) {
	out := make(map[string]float64, len(metrics)+1)
	for key, value := range metrics {
		if key == "" || !utf8.ValidString(key) {
			return nil, fmt.Errorf("metric name %q is empty or not UTF-8", key)
		}
		if !strings.Contains(key, "/") {
			key = split + "/" + key
		}
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("metric %q is given with and without its split", key)
		}
		out[key] = value
	}
	return out, nil
}
