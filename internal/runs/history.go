package runs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/goart-dev/art"
)

// history is history.jsonl in memory.
type history struct {
	rows  []historyRow
	start time.Time // of the run: what time/wall_clock_sec counts from
	size  int64     // bytes of the file
	torn  bool      // the file may hold more than rows; the next change rewrites it
}

// historyRow is one line of the file.
type historyRow struct {
	art.HistoryRow
	line []byte // without the newline
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

// Log stores metrics as the row of (split, step), on disk when it returns. A second call for the same pair replaces the
// row. Keys without a slash get the split as prefix. step is at most [Run.Next].
func (r *Run) Log(split string, step int, metrics map[string]float64) error {
	const op = "log metrics"
	return r.change(op, func() error {
		if err := errors.Join(checkName("split", split), r.checkStep(step)); err != nil {
			return invalid(op, err)
		}
		row, err := r.newRow(split, step, metrics)
		if err != nil {
			return invalid(op, err)
		}
		if err := r.store(row); err != nil {
			return storage(op, err, "the rows that were there before are kept")
		}
		return nil
	})
}

// checkStep refuses steps that recovery would drop although they were stored without error.
func (r *Run) checkStep(step int) error {
	if next := r.Next(); step < 0 || step > next {
		return fmt.Errorf("step %d: the next step of this run is %d", step, next)
	}
	return nil
}

func (r *Run) newRow(split string, step int, metrics map[string]float64) (historyRow, error) {
	metrics, err := rowMetrics(split, metrics)
	if err != nil {
		return historyRow{}, err
	}
	now := r.now()
	if _, given := metrics[keyWallClock]; !given {
		metrics[keyWallClock] = now.Sub(r.history.start).Seconds()
	}
	row := historyRow{HistoryRow: art.HistoryRow{Split: split, Step: step, Metrics: metrics}}
	row.line, err = encodeRow(row.HistoryRow, now)
	return row, err
}

// store appends a row, or rewrites the file when the row replaces another.
func (r *Run) store(row historyRow) error {
	rows := slices.Clone(r.history.rows)
	at := slices.IndexFunc(rows, func(o historyRow) bool { return o.Split == row.Split && o.Step == row.Step })
	if at < 0 && !r.history.torn && r.history.size > 0 {
		return r.appendRow(row)
	}
	if at < 0 {
		rows = append(rows, row)
	} else {
		rows[at] = row
	}
	return r.rewriteHistory(rows)
}

func (r *Run) appendRow(row historyRow) error {
	line := append(slices.Clone(row.line), '\n')
	if err := r.disk.append(r.historyPath(), line); err != nil {
		r.history.torn = true
		return errors.Join(err, r.disk.truncate(r.historyPath(), r.history.size))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.rows = append(r.history.rows, row)
	r.history.size += int64(len(line))
	return nil
}

func (r *Run) rewriteHistory(rows []historyRow) error {
	content := joinRows(rows)
	r.history.torn = true
	if err := r.disk.replace(r.historyPath(), content); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.rows, r.history.size, r.history.torn = rows, int64(len(content)), false
	return nil
}

// recoverHistory reads the file. It drops what an interrupted step left and moves aside what is damaged.
func (r *Run) recoverHistory() error {
	content, err := os.ReadFile(r.historyPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	read := r.readHistory(content)
	r.history = history{rows: read.rows, start: cmp.Or(read.start, r.now()), size: int64(len(content))}
	if len(read.aside) > 0 {
		if err := r.setAside(read.aside); err != nil {
			return err
		}
	}
	r.recovered.Rows += read.dropped
	r.recovered.Aside += len(read.aside)
	kept := joinRows(read.rows)
	switch {
	case bytes.Equal(kept, content):
		return nil
	case bytes.HasPrefix(content, kept): // on a full disk too
		return r.cutHistory(int64(len(kept)))
	}
	return r.rewriteHistory(read.rows)
}

// cutHistory drops the end of the file.
func (r *Run) cutHistory(size int64) error {
	if err := r.disk.truncate(r.historyPath(), size); err != nil {
		return err
	}
	r.history.size = size
	return r.disk.syncFile(r.historyPath())
}

// joinRows is the content of a file with these rows.
func joinRows(rows []historyRow) []byte {
	var content []byte
	for _, row := range rows {
		content = append(append(content, row.line...), '\n')
	}
	return content
}

// historyRead is what a history file holds.
type historyRead struct {
	rows    []historyRow
	aside   [][]byte // lines that cannot be rows of this run
	dropped int      // rows that an interruption explains
	start   time.Time
}

// readHistory sorts the lines of a history file.
func (r *Run) readHistory(content []byte) historyRead {
	var read historyRead
	lines := bytes.Split(content, []byte("\n"))
	for number, line := range lines {
		last := number == len(lines)-1
		if len(line) == 0 {
			continue
		}
		row, recorded, err := decodeRow(line)
		if err == nil && read.start.IsZero() {
			read.start = startOf(row, recorded)
		}
		switch limit := r.limit(); {
		case err != nil && last:
			r.log.Info("dropped the torn last row of the history", "line", number+1, "bytes", len(line))
			read.dropped++
		case err != nil:
			r.log.Warn("moved a damaged history row aside", "line", number+1, "err", err)
			read.aside = append(read.aside, line)
		case row.Step > limit+1:
			r.log.Warn("moved a history row aside: checkpoints are missing", "line", number+1, "step", row.Step, "latest", limit)
			read.aside = append(read.aside, line)
		case row.Step > limit:
			r.log.Info("dropped a history row of a step that was not committed", "split", row.Split, "step", row.Step)
			read.dropped++
		default:
			read.rows = append(read.rows, historyRow{row, slices.Clone(line)})
		}
	}
	return read
}

// startOf returns when the run began, as a row tells it; the zero time when it does not.
func startOf(row art.HistoryRow, recorded time.Time) time.Time {
	seconds := row.Metrics[keyWallClock]
	if recorded.IsZero() || !(seconds >= 0 && seconds < 1e9) {
		return time.Time{}
	}
	return recorded.Add(-time.Duration(seconds * float64(time.Second)))
}

// setAside appends lines to history.jsonl.damaged.
func (r *Run) setAside(lines [][]byte) error {
	path := r.historyPath() + ".damaged"
	content := append(bytes.Join(lines, []byte("\n")), '\n')
	if err := r.disk.append(path, content); err != nil {
		return err
	}
	return r.disk.syncDir(r.dir)
}
