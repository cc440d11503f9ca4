package wandb

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/goart-dev/art/internal/protofield"
)

// The field numbers are those of wandb_internal.proto of wandb 0.31.

// Fields of Record.
const (
	fieldNum     = 1
	fieldHistory = 2
	fieldSummary = 3
	fieldConfig  = 5
	fieldFiles   = 6
	fieldMetric  = 12
	fieldRun     = 17
	fieldExit    = 18
)

// withNumber puts the number of a record before its content, and drops one that is there.
func withNumber(record []byte, num int64) []byte {
	if field, kind, n := protowire.ConsumeTag(record); field == fieldNum {
		record = record[n+max(0, protowire.ConsumeFieldValue(field, kind, record[n:])):]
	}
	return append(protofield.AppendVarint(nil, fieldNum, uint64(num)), record...)
}

// runRecord begins a run.
func runRecord(id, entity, project, name string, start time.Time, config map[string]any) []byte {
	b := protofield.AppendText(nil, 1, id)
	b = protofield.AppendText(b, 2, entity)
	b = protofield.AppendText(b, 3, project)
	if len(config) > 0 {
		b = protofield.AppendBytes(b, 4, configItems(config))
	}
	b = protofield.AppendText(b, 8, name)
	b = protofield.AppendBytes(b, 17, protofield.AppendVarint(nil, 1, uint64(start.Unix())))
	return protofield.AppendBytes(nil, fieldRun, b)
}

func configRecord(config map[string]any) []byte {
	return protofield.AppendBytes(nil, fieldConfig, configItems(config))
}

func configItems(config map[string]any) []byte {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(config)) {
		item := protofield.AppendText(protofield.AppendText(nil, 1, key), 16, asJSON(config[key]))
		b = protofield.AppendBytes(b, 1, item)
	}
	return b
}

// metricRecord defines metrics by a glob, with the training step as x-axis, or that step itself.
func metricRecord(glob string) []byte {
	if glob == keyStep {
		b := protofield.AppendBytes(protofield.AppendText(nil, 1, glob), 6, protofield.AppendVarint(nil, 3, 1))
		return protofield.AppendBytes(nil, fieldMetric, b)
	}
	b := protofield.AppendText(protofield.AppendText(nil, 2, glob), 4, keyStep)
	return protofield.AppendBytes(nil, fieldMetric, protofield.AppendBytes(b, 6, protofield.AppendVarint(nil, 1, 1)))
}

// historyRecord is a row.
func historyRecord(row map[string]any) []byte {
	b := items(row)
	step := 0
	switch n := row["_step"].(type) {
	case int:
		step = n
	case float64: // of a row that was read
		step = int(n)
	}
	b = protofield.AppendBytes(b, 2, protofield.AppendVarint(nil, 1, uint64(step)))
	return protofield.AppendBytes(nil, fieldHistory, b)
}

func summaryRecord(summary map[string]any) []byte {
	return protofield.AppendBytes(nil, fieldSummary, items(summary))
}

// items are the fields "item" of a history and "update" of a summary.
func items(values map[string]any) []byte {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(values)) {
		b = protofield.AppendBytes(b, 1, protofield.AppendText(protofield.AppendText(nil, 2, key), 16, asJSON(values[key])))
	}
	return b
}

// fileRecord says that a file below "files" is to be uploaded.
func fileRecord(path string) []byte {
	item := protofield.AppendVarint(protofield.AppendVarint(protofield.AppendText(nil, 1, path), 2, 0), 3, 2) // now; media
	return protofield.AppendBytes(nil, fieldFiles, protofield.AppendBytes(nil, 1, item))
}

func exitRecord(failed bool, runtime time.Duration) []byte {
	code := uint64(0)
	if failed {
		code = 1
	}
	b := protofield.AppendVarint(protofield.AppendVarint(nil, 1, code), 2, uint64(max(0, runtime.Seconds())))
	return protofield.AppendBytes(nil, fieldExit, b)
}

// kindOfRecord returns the field of a record that is not its number, and its content.
func kindOfRecord(record []byte) (kind protofield.Number, content []byte, err error) {
	for f, err := range protofield.All(record) {
		if err != nil {
			return 0, nil, err
		}
		if f.Number != fieldNum && f.Data != nil {
			kind, content = f.Number, f.Data
		}
	}
	return kind, content, nil
}

// rowOf reads a history record.
func rowOf(content []byte) (map[string]any, error) {
	row := map[string]any{}
	for f, err := range protofield.All(content) {
		if err == nil && f.Number == 1 {
			err = readItem(row, f.Data)
		}
		if err != nil {
			return nil, err
		}
	}
	return row, nil
}

// readItem adds an item of a history record to a row.
func readItem(row map[string]any, item []byte) error {
	var key string
	var value []byte
	for f, err := range protofield.All(item) {
		if err != nil {
			return err
		}
		switch f.Number {
		case 1, 2:
			key = string(f.Data)
		case 16:
			value = f.Data
		}
	}
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return fmt.Errorf("wandb: value of %q: %w", key, err)
	}
	row[key] = v
	return nil
}

// asJSON returns the JSON of plain values.
func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(data)
}
