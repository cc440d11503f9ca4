package runs

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

func TestLog_Form(t *testing.T) {
	r := openTemp(t, 1)
	r.now = func() time.Time { return clock().Add(1500 * time.Millisecond) }
	require.NoError(t, r.Log("train", 1, map[string]float64{
		"reward": 0.1, "loss/policy": -2, "nan": math.NaN(), "up": math.Inf(1), "down": math.Inf(-1),
	}))
	content, err := os.ReadFile(r.historyPath())
	require.NoError(t, err)
	require.Equal(t,
		`{"loss/policy":-2,"recorded_at":"2026-01-02T03:04:06.5Z","split":"train","step":1,"time/wall_clock_sec":1.5,`+
			`"train/down":"-Infinity","train/nan":"NaN","train/reward":0.1,"train/up":"Infinity","training_step":1}`+"\n",
		string(content))
}

func TestLog_ReadWhatWasWritten(t *testing.T) {
	g := generator{seeded(t)}
	r := openTemp(t, 3)
	want := map[[2]any]map[string]float64{}
	for range 200 {
		split, step := pick(g, "train", "val", "test-2"), g.IntN(4)
		metrics := map[string]float64{"x": g.float(), "a/b": g.float(), "time/wall_clock_sec": 1}
		require.NoError(t, r.Log(split, step, metrics))
		want[[2]any{split, step}] = map[string]float64{split + "/x": metrics["x"], "a/b": metrics["a/b"],
			"time/wall_clock_sec": 1}
	}
	require.NoError(t, r.Commit(4, func(string) error { return nil })) // with it, the train row of step 3
	check := func() {
		rows, err := r.History()
		require.NoError(t, err)
		require.Len(t, rows, len(want))
		for _, row := range rows {
			require.Equal(t, want[[2]any{row.Split, row.Step}], row.Metrics)
		}
	}
	check()
	r, err := reopen(t, r)
	require.NoError(t, err)
	check()
}

// A second row of the same split and step is merged into the first, in place.
func TestLog_Merges(t *testing.T) {
	r := openTemp(t, 1)
	require.NoError(t, r.Log("train", 0, map[string]float64{"x": 1}))
	require.NoError(t, r.Log("train", 1, map[string]float64{"x": 2}))
	require.NoError(t, r.Log("train", 0, map[string]float64{"y": 3}))
	require.NoError(t, r.Log("train", 1, map[string]float64{"train/x": 4}))
	rows, err := r.History()
	require.NoError(t, err)
	require.Equal(t, []art.HistoryRow{
		{Split: "train", Step: 0, Metrics: map[string]float64{"train/x": 1, "train/y": 3, "time/wall_clock_sec": 0}},
		{Split: "train", Step: 1, Metrics: map[string]float64{"train/x": 4, "time/wall_clock_sec": 0}},
	}, rows)
	rows[0].Metrics["train/y"] = 9
	rows, err = r.History()
	require.NoError(t, err)
	require.Equal(t, 3.0, rows[0].Metrics["train/y"], "History returns a copy")
}

// A row that is logged again as it is, which is what Log after Train does, is not written again.
func TestLog_SameAgain(t *testing.T) {
	r := openTemp(t, 1)
	metrics := map[string]float64{"x": 1, "nan": math.NaN()}
	require.NoError(t, r.Log("train", 0, metrics))
	r.disk.Hook = func(op, path string, _ func() error) error { t.Errorf("%s %s", op, path); return nil }
	r.now = func() time.Time { return clock().Add(time.Hour) }
	require.NoError(t, r.Log("train", 0, metrics))
	require.NoError(t, r.Log("train", 0, map[string]float64{"train/x": 1}))
	require.NoError(t, r.Log("train", 0, nil))
	r.disk.Hook = nil
}

func TestLog_Refused(t *testing.T) {
	r := openTemp(t, 1)
	twice := map[string]float64{"reward": 1, "train/reward": 2}
	for name, err := range map[string]error{
		"split":    r.Log("a/b", 0, nil),
		"negative": r.Log("train", -1, nil),
		"too late": r.Log("train", 2, nil),
		"twice":    r.Log("train", 1, twice),
		"UTF-8":    r.Log("train", 1, map[string]float64{"\xff": 1}),
		"empty":    r.Log("train", 1, map[string]float64{"": 1}),
	} {
		require.ErrorIs(t, err, art.ErrInvalid, name)
	}
	require.NoFileExists(t, r.historyPath())
}

// The clock of a run goes on when it is opened again, from the last row where it was set back meanwhile.
func TestLog_WallClockContinues(t *testing.T) {
	r := openTemp(t, 0)
	r.now = func() time.Time { return clock().Add(time.Minute) }
	require.NoError(t, r.Log("val", 0, nil))
	r, err := reopen(t, r)
	require.NoError(t, err)
	r.now = func() time.Time { return clock().Add(time.Hour) }
	require.NoError(t, r.Log("test", 0, nil))
	rows, err := r.History()
	require.NoError(t, err)
	require.Equal(t, 60.0, rows[0].Metrics["time/wall_clock_sec"])
	require.Equal(t, 3660.0, rows[1].Metrics["time/wall_clock_sec"], "an hour after it was opened again")
}

// TestLog_ClockJumps: the clock of a run never goes back, and when it is set while nothing runs, a run can be opened.
func TestLog_ClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		r := openTemp(t, 0)
		r.now = func() time.Time { return clock().Add(time.Minute) }
		require.NoError(t, r.Log("val", 0, nil))
		r, err := reopenAt(t, r, clock().Add(jump))
		require.NoError(t, err)
		require.NoError(t, r.Log("test", 0, nil))
		rows, err := r.History()
		require.NoError(t, err)
		require.Equal(t, max(60, jump.Seconds()), rows[1].Metrics["time/wall_clock_sec"])
	}
}

// A partially written row does not damage the next one, whether or not it could be truncated.
func TestLog_HalfWritten(t *testing.T) {
	for _, once := range []bool{true, false} {
		f := &fault{at: -1, err: syscall.ENOSPC, once: once}
		r, err := openRun(tempDir(t), f.disk())
		require.NoError(t, err)
		require.NoError(t, r.Log("best", 0, nil))
		before := size(r.historyPath())
		f.at = f.seen + 6 // of the checksum: create, write, sync, rename, syncdir; of the history: create, write
		require.ErrorIs(t, r.Log("val", 0, nil), art.ErrStorage)
		require.Equal(t, once, size(r.historyPath()) == before)
		f.at = -1
		require.NoError(t, r.Log("test", 0, nil))
		r, err = reopen(t, r)
		require.NoError(t, err)
		rows, err := r.History()
		require.NoError(t, err)
		require.Len(t, rows, 2)
		require.Equal(t, "test", rows[1].Split)
		require.Zero(t, r.Recovered())
	}
}

// A last row that lacks only its newline was edited by hand: it is kept.
func TestHistory_NoLastNewline(t *testing.T) {
	r := openTemp(t, 0)
	require.NoError(t, os.WriteFile(r.historyPath(),
		[]byte("\n"+`{"split":"a","step":0}`+"\n\n"+`{"split":"b","step":0,"note":"kept"}`), 0o644))
	r, err := reopen(t, r)
	require.NoError(t, err)
	require.NoError(t, r.Log("c", 0, nil))
	content, err := os.ReadFile(r.historyPath())
	require.NoError(t, err)
	lines := strings.Split(string(content), "\n")
	require.Len(t, lines, 4)
	require.Equal(t, `{"split":"b","step":0,"note":"kept"}`, lines[1])
}

// A row that is read is written back the same, and reading never fails but with an error.
func FuzzHistoryRow(f *testing.F) {
	f.Add([]byte(`{"train/x":0.5,"split":"train","step":1,"recorded_at":"2026-01-02T03:04:05Z","nan":"NaN"}`))
	f.Add([]byte(`{"split":"train","step":1e999}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		row, recorded, err := decodeRow(line)
		if err != nil {
			return
		}
		for key := range row.Metrics {
			require.True(t, utf8.ValidString(key))
		}
		again, err := encodeRow(row, recorded)
		require.NoError(t, err)
		row2, recorded2, err := decodeRow(again)
		require.NoError(t, err)
		require.True(t, recorded.Equal(recorded2))
		require.Equal(t, dump(encodable(row.HistoryRow)), dump(encodable(row2.HistoryRow)))
	})
}

// encodable replaces what JSON cannot write.
func encodable(row art.HistoryRow) map[string]any {
	fields := map[string]any{"split": row.Split, "step": row.Step}
	for key, value := range row.Metrics {
		fields["metric "+key] = jsonFloat(value)
	}
	return fields
}

func FuzzReadHistory(f *testing.F) {
	f.Add([]byte(`{"split":"a","step":0}` + "\n" + `{"split":"a","step":7}` + "\n{\n" + `{"spl`))
	f.Fuzz(func(t *testing.T, content []byte) {
		r := newRun("", nil, disk{})
		read := r.readHistory(content)
		for _, row := range read.rows {
			require.Zero(t, row.Step)
		}
		lines := strings.FieldsFunc(string(content), func(c rune) bool { return c == '\n' })
		require.Equal(t, len(lines), len(read.rows)+len(read.aside)+read.dropped, "every line is accounted for")
		again := r.readHistory(joinRows(read.rows))
		require.Equal(t, joinRows(read.rows), joinRows(again.rows))
	})
}

// reopenAt opens a run again at a time.
func reopenAt(t *testing.T, r *Run, at time.Time) (*Run, error) {
	t.Helper()
	require.NoError(t, r.Close())
	root := filepath.Join(r.Dir(), "..", "..", "..")
	again, err := open(root, "project", "model", &Options{Now: func() time.Time { return at }}, disk{})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, again.Close()) })
	}
	return again, err
}
