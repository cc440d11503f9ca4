package wandb

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
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

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return appendBytes(b, field, []byte(text))
}

// withNumber puts the number of a record before its content, and drops one that is there.
func withNumber(record []byte, num int64) []byte {
	if field, kind, n := protowire.ConsumeTag(record); field == fieldNum {
		record = record[n+max(0, protowire.ConsumeFieldValue(field, kind, record[n:])):]
	}
	return append(appendVarint(nil, fieldNum, uint64(num)), record...)
}

// runRecord begins a run.
func runRecord(id, entity, project, name string, start time.Time, config map[string]any) []byte {
	b := appendText(nil, 1, id)
	b = appendText(b, 2, entity)
	b = appendText(b, 3, project)
	if len(config) > 0 {
		b = appendBytes(b, 4, configItems(config))
	}
	b = appendText(b, 8, name)
	b = appendBytes(b, 17, appendVarint(nil, 1, uint64(start.Unix())))
	return appendBytes(nil, fieldRun, b)
}

func configRecord(config map[string]any) []byte {
	return appendBytes(nil, fieldConfig, configItems(config))
}

func configItems(config map[string]any) []byte {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(config)) {
		item := appendText(appendText(nil, 1, key), 16, asJSON(config[key]))
		b = appendBytes(b, 1, item)
	}
	return b
}

// metricRecord defines metrics by a glob, with the training step as x-axis, or that step itself.
func metricRecord(glob string) []byte {
	if glob == keyStep {
		return appendBytes(nil, fieldMetric, appendBytes(appendText(nil, 1, glob), 6, appendVarint(nil, 3, 1)))
	}
	b := appendText(appendText(nil, 2, glob), 4, keyStep)
	return appendBytes(nil, fieldMetric, appendBytes(b, 6, appendVarint(nil, 1, 1)))
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
	return appendBytes(nil, fieldHistory, appendBytes(b, 2, appendVarint(nil, 1, uint64(step))))
}

func summaryRecord(summary map[string]any) []byte {
	return appendBytes(nil, fieldSummary, items(summary))
}

// items are the fields "item" of a history and "update" of a summary.
func items(values map[string]any) []byte {
	var b []byte
	for _, key := range slices.Sorted(maps.Keys(values)) {
		b = appendBytes(b, 1, appendText(appendText(nil, 2, key), 16, asJSON(values[key])))
	}
	return b
}

// fileRecord says that a file below "files" is to be uploaded.
func fileRecord(path string) []byte {
	item := appendVarint(appendVarint(appendText(nil, 1, path), 2, 0), 3, 2) // now; media
	return appendBytes(nil, fieldFiles, appendBytes(nil, 1, item))
}

func exitRecord(failed bool, runtime time.Duration) []byte {
	code := uint64(0)
	if failed {
		code = 1
	}
	b := appendVarint(appendVarint(nil, 1, code), 2, uint64(runtime.Seconds()))
	return appendBytes(nil, fieldExit, b)
}

// kindOfRecord returns the field of a record that is not its number, and its content.
func kindOfRecord(record []byte) (kind protowire.Number, content []byte, err error) {
	err = fields(record, func(field protowire.Number, inner []byte) {
		if field != fieldNum && inner != nil {
			kind, content = field, inner
		}
	})
	return kind, content, err
}

// rowOf reads a history record.
func rowOf(content []byte) (map[string]any, error) {
	row := map[string]any{}
	var list [][]byte
	err := fields(content, func(field protowire.Number, inner []byte) {
		if field == 1 {
			list = append(list, inner)
		}
	})
	for _, item := range list {
		var key, value string
		if err := fields(item, func(field protowire.Number, inner []byte) {
			switch field {
			case 1, 2:
				key = string(inner)
			case 16:
				value = string(inner)
			}
		}); err != nil {
			return nil, err
		}
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			return nil, fmt.Errorf("wandb: value of %q: %w", key, err)
		}
		row[key] = v
	}
	return row, err
}

// fields calls f with each field of a message; inner is nil for one that is no bytes.
func fields(b []byte, f func(field protowire.Number, inner []byte)) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		n = protowire.ConsumeFieldValue(field, kind, b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		var inner []byte
		if kind == protowire.BytesType {
			inner, _ = protowire.ConsumeBytes(b)
		}
		f(field, inner)
		b = b[n:]
	}
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
