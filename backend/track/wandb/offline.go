package wandb

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/protofield"
	"github.com/goart-dev/art/internal/track"
)

// offline is the folder of one run: a [track.Run], and a [track.Rewinder].
type offline struct {
	opts   Options
	id     string
	name   string
	dir    string // offline-run-TIME-ID
	h      *history
	file   *writer
	rows   []map[string]any // of earlier processes, until the first write
	config map[string]any
	// told is called with each row after it is written; nil for nobody.
	told func(row map[string]any)
}

// openOffline finds the folder of a run, or names a new one.
func openOffline(o Options, m *art.Model) (*offline, error) {
	id, err := runID(m.Name())
	if err != nil {
		return nil, err
	}
	now := time.Now()
	o.Project = cmp.Or(o.Project, m.Options().Project)
	r := &offline{opts: o, id: id, name: m.Name(), h: newHistory(o.OwnNames, now)}
	r.dir, err = findRun(o.Dir, id)
	if r.dir == "" {
		r.dir = filepath.Join(o.Dir, "offline-run-"+now.Format("20060102_150405")+"-"+id)
	}
	return r, err
}

// findRun returns the newest folder of a run, empty when there is none.
func findRun(dir, id string) (string, error) {
	entries, err := os.ReadDir(dir)
	found := ""
	for _, entry := range entries { // sorted
		rest, ok := strings.CutPrefix(entry.Name(), "offline-run-")
		if ok && len(rest) > 16 && rest[16:] == id && entry.IsDir() {
			found = filepath.Join(dir, entry.Name())
		}
	}
	return found, err
}

// path of the file.
func (r *offline) path() string { return filepath.Join(r.dir, "run-"+r.id+".wandb") }

func (r *offline) Written(context.Context) (track.Values, error) {
	file, err := os.ReadFile(r.path())
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	records, err := readRecords(file)
	if err != nil {
		return nil, errors.Join(err, errors.New("move "+r.dir+" away"))
	}
	r.rows = nil
	values := track.Values{}
	for _, record := range records {
		kind, content, err := kindOfRecord(record)
		if err != nil {
			return nil, err
		}
		if kind != fieldHistory {
			continue
		}
		row, err := rowOf(content)
		if err != nil {
			return nil, err
		}
		r.rows = append(r.rows, row)
		r.h.read(row, values)
	}
	return values, nil
}

func (r *offline) Rewind(_ context.Context, step int, keep track.Values) error {
	var kept []map[string]any
	for _, row := range r.rows {
		at, ok := row[keyStep].(float64)
		if ok && int(at) >= step {
			row = r.keptOf(row, keep[int(at)])
		}
		if row != nil {
			kept = append(kept, row)
		}
	}
	r.rows, r.h.summary = kept, map[string]any{}
	for _, row := range kept {
		r.h.read(row, track.Values{})
	}
	return nil
}

// keptOf returns what is kept of a row, nil for nothing. A table is kept with a metric of its split.
func (r *offline) keptOf(row map[string]any, keep map[string]float64) map[string]any {
	out, any := map[string]any{}, false
	for key, v := range row {
		_, metric := numberOf(v)
		_, ok := keep[r.h.name(key, ownNames)]
		own := key == keyStep || strings.HasPrefix(key, "_")
		if own || ok || !metric && !strings.HasPrefix(key, "train/") {
			out[key] = v
			any = any || !own
		}
	}
	if !any {
		return nil
	}
	return out
}

// begin makes the file: of a new run, or again of a resumed one, without its end.
func (r *offline) begin() error {
	if r.file != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Join(r.dir, "files"), 0o777); err != nil {
		return err
	}
	part := r.path() + ".part"
	if err := os.Remove(part); err != nil && !os.IsNotExist(err) {
		return err
	}
	records := [][]byte{
		runRecord(r.id, r.opts.Entity, r.opts.Project, r.name, r.h.start, r.config), metricRecord(keyStep),
	}
	r.h.sections = nil
	for _, row := range r.rows {
		records = append(records, r.records(row)...)
	}
	file, err := create(part, records)
	if err != nil {
		return err
	}
	if err := errors.Join(file.F.Sync(), os.Rename(part, r.path())); err != nil {
		return errors.Join(err, file.F.Close())
	}
	r.file, r.rows = file, nil
	return nil
}

// records returns a row, after the definitions of new metrics in it and the file of a table.
func (r *offline) records(row map[string]any) [][]byte {
	var out [][]byte
	for _, glob := range r.h.define(row) {
		out = append(out, metricRecord(glob))
	}
	for _, v := range row {
		if object, ok := v.(map[string]any); ok && object["_type"] == "table-file" {
			if path, ok := object["path"].(string); ok {
				out = append(out, fileRecord(path))
			}
		}
	}
	return append(out, historyRecord(row))
}

func (r *offline) Config(_ context.Context, config map[string]any) error {
	r.config = config
	if r.file == nil {
		return r.begin()
	}
	return r.file.write(protofield.AppendBytes(nil, fieldConfig, items(1, config)))
}

func (r *offline) Rows(_ context.Context, rows []track.Row) error {
	if err := r.begin(); err != nil {
		return err
	}
	var list []map[string]any
	for _, row := range rows {
		list = append(list, r.h.row(row.Time, row.Step, r.h.values(row.Metrics)))
	}
	return r.append(list)
}

// append writes rows. After an error the metrics in them are defined again.
func (r *offline) append(rows []map[string]any) error {
	var records [][]byte
	for _, row := range rows {
		records = append(records, r.records(row)...)
	}
	if err := r.file.write(records...); err != nil {
		r.h.sections = nil
		return err
	}
	if r.told != nil {
		for _, row := range rows {
			r.told(row)
		}
	}
	return nil
}

func (r *offline) Groups(_ context.Context, g track.Groups) error {
	if r.opts.Tables < 0 {
		return nil
	}
	if err := r.begin(); err != nil {
		return err
	}
	name, content, value, err := table(g, r.opts.Tables)
	if err != nil {
		return err
	}
	path := filepath.Join(r.dir, "files", filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		return err
	}
	row := r.h.row(g.Time, g.Step, map[string]any{g.Split + "/trajectories": value})
	return r.append([]map[string]any{row})
}

func (r *offline) Close(_ context.Context, failed bool) error {
	if r.file == nil {
		return nil
	}
	err := r.file.write(summaryRecord(r.h.summary), exitRecord(failed, time.Since(r.h.start)))
	return errors.Join(err, r.file.Close())
}
