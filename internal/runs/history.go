package runs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goart-dev/art"
)

// history is history.jsonl in memory.
type history struct {
	rows  []historyRow
	start time.Time // of the run: the origin of time/wall_clock_sec
	size  int64     // bytes of the file
	torn  bool      // the file may end with a partial row; the next change rewrites it
}

// historyRow is one line of the file.
type historyRow struct {
	art.HistoryRow
	groups int    // of trajectories that were committed with the row
	line   []byte // without the newline
}

func (r *Run) historyPath() string { return filepath.Join(r.dir, "history.jsonl") }

// History returns the stored rows in the order in which they were first logged. Metrics include "time/wall_clock_sec",
// the seconds since the run began.
func (r *Run) History() ([]art.HistoryRow, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows := make([]art.HistoryRow, len(r.history.rows))
	for i, row := range r.history.rows {
		rows[i] = row.HistoryRow
		rows[i].Metrics = maps.Clone(row.Metrics)
	}
	return rows, nil
}

// Log merges metrics into the row of (split, step), on disk when it returns: existing keys get the new values,
// the others stay. Keys without a slash get the split as prefix. step is at most that of the newest checkpoint, 0
// without one.
//
// The row of split "train" at the newest checkpoint belongs to the update that comes next: [Open] drops it unless
// [Run.CommitUpdate] commits it.
func (r *Run) Log(split string, step int, metrics map[string]float64) error {
	const op = "log metrics"
	return r.record(op, func() error {
		if err := errors.Join(checkName("split", split), r.checkStep(step)); err != nil {
			return invalid(op, err)
		}
		metrics, err := rowMetrics(split, metrics)
		if err != nil {
			return invalid(op, err)
		}
		return storage(op, r.mergeRow(split, step, metrics, 0), "the rows that were there before are kept")
	})
}

// checkStep refuses steps that the run has not reached.
func (r *Run) checkStep(step int) error {
	if newest := r.newest(); step < 0 || step > newest {
		return fmt.Errorf("step %d: the newest step of this run is %d", step, newest)
	}
	return nil
}

// mergeRow merges metrics into a row, which it creates if needed. It writes nothing if nothing changes. groups is the
// number of groups that are committed with the row; 0 keeps it.
func (r *Run) mergeRow(split string, step int, metrics map[string]float64, groups int) error {
	now, old := r.now(), historyRow{}
	at := slices.IndexFunc(r.history.rows, func(o historyRow) bool { return o.Split == split && o.Step == step })
	if at >= 0 {
		old = r.history.rows[at]
	}
	merged := maps.Clone(old.Metrics)
	if merged == nil {
		merged = map[string]float64{}
	}
	maps.Copy(merged, metrics)
	row := historyRow{art.HistoryRow{Split: split, Step: step, Metrics: merged}, cmp.Or(groups, old.groups), nil}
	equal := func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) }
	if at >= 0 && row.groups == old.groups && maps.EqualFunc(merged, old.Metrics, equal) {
		return nil
	}
	if _, given := metrics[keyWallClock]; !given {
		merged[keyWallClock] = now.Sub(r.history.start).Seconds()
	}
	var err error
	if row.line, err = encodeRow(row, now); err != nil {
		return err
	}
	if at < 0 && !r.history.torn && r.history.size > 0 {
		return r.appendRow(row)
	}
	rows := slices.Clone(r.history.rows)
	if at < 0 {
		rows = append(rows, row)
	} else {
		rows[at] = row
	}
	return r.rewriteHistory(rows)
}

func (r *Run) appendRow(row historyRow) error {
	line := append(slices.Clone(row.line), '\n')
	before := joinRows(r.history.rows)
	if err := r.announceHistory(before, append(slices.Clone(before), line...)); err != nil {
		return err
	}
	if err := r.disk.Append(r.historyPath(), line); err != nil {
		r.history.torn = true
		return errors.Join(err, r.disk.Truncate(r.historyPath(), r.history.size))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.rows = append(r.history.rows, row)
	r.history.size += int64(len(line))
	return nil
}

func (r *Run) rewriteHistory(rows []historyRow) error {
	content := joinRows(rows)
	if err := r.announceHistory(joinRows(r.history.rows), content); err != nil {
		return err
	}
	r.history.torn = true
	if err := r.disk.Replace(r.historyPath(), content); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.rows, r.history.size, r.history.torn = rows, int64(len(content)), false
	return nil
}

// recoverHistory reads the file. It drops the rows of an interrupted update and moves damaged ones aside.
func (r *Run) recoverHistory() error {
	content, err := os.ReadFile(r.historyPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := r.checkHistory(content); err != nil {
		return err
	}
	read := r.readHistory(content)
	r.history = history{rows: read.rows, start: startAt(r.now(), read), size: int64(len(content))}
	if len(read.aside) > 0 {
		aside := append(bytes.Join(read.aside, []byte("\n")), '\n')
		if err := r.disk.Append(r.historyPath()+".damaged", aside); err != nil {
			return err
		}
		if err := r.disk.SyncDir(r.dir); err != nil {
			return err
		}
	}
	r.recovered.Rows += read.dropped
	r.recovered.Aside += len(read.aside)
	kept := joinRows(read.rows)
	if bytes.Equal(kept, content) {
		return nil
	}
	if !bytes.HasPrefix(content, kept) {
		return r.rewriteHistory(read.rows)
	}
	// Truncation works on a full disk too.
	if !r.announced.allows(kept) { // when more than the last change is dropped
		if err := r.announceHistory(content, kept); err != nil {
			return err
		}
	}
	size := int64(len(kept))
	if err := r.disk.Truncate(r.historyPath(), size); err != nil {
		return err
	}
	r.history.size = size
	return r.disk.SyncFile(r.historyPath())
}

// joinRows returns the content of a file with these rows.
func joinRows(rows []historyRow) []byte {
	var content []byte
	for _, row := range rows {
		content = append(append(content, row.line...), '\n')
	}
	return content
}

// historyRead is a parsed history file.
type historyRead struct {
	rows    []historyRow
	aside   [][]byte // lines that cannot be rows of this run
	dropped int      // rows that an interruption explains
	start   time.Time
}

// readHistory parses the lines of a history file and sorts out those that are not kept.
func (r *Run) readHistory(content []byte) historyRead {
	var read historyRead
	lines := bytes.Split(content, []byte("\n"))
	for number, line := range lines {
		last := number == len(lines)-1
		if len(line) == 0 {
			continue
		}
		row, recorded, err := decodeRow(line)
		seconds := row.Metrics[keyWallClock]
		if err == nil && read.start.IsZero() && !recorded.IsZero() && seconds >= 0 && seconds < maxWallClock {
			read.start = recorded.Add(-time.Duration(seconds * float64(time.Second)))
		}
		switch newest := r.newest(); {
		case err != nil && last:
			r.log.Info("dropped the torn last row of the history", "line", number+1, "bytes", len(line))
			read.dropped++
		case err != nil:
			r.log.Warn("moved a damaged history row aside", "line", number+1, "err", err)
			read.aside = append(read.aside, line)
		case row.Step > newest:
			r.log.Warn("moved a history row aside: checkpoints are missing",
				"line", number+1, "step", row.Step, "newest", newest)
			read.aside = append(read.aside, line)
		case r.uncommitted(row.Split, row.Step):
			r.log.Info("dropped a history row of an update that was not committed", "step", row.Step)
			read.dropped++
		default:
			row.line = slices.Clone(line)
			read.rows = append(read.rows, row)
		}
	}
	return read
}

// startAt returns the start of a run that is opened now, with now's reading of the monotonic clock. When the clock has
// been set back since the rows were stored, the time of the run goes on from the last of them.
func startAt(now time.Time, read historyRead) time.Time {
	if read.start.IsZero() {
		return now
	}
	passed := now.Sub(read.start)
	for _, row := range read.rows {
		if seconds := row.Metrics[keyWallClock]; seconds < maxWallClock { // not NaN
			passed = max(passed, time.Duration(seconds*float64(time.Second)))
		}
	}
	return now.Add(-max(0, passed))
}

// maxWallClock bounds what a row can say of the time of a run, in seconds.
const maxWallClock = 1e9

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
