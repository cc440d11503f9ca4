package wandb

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/goart-dev/art/internal/protofield"
	"github.com/goart-dev/art/internal/track"
)

// A .wandb file is a log in the framing of LevelDB: blocks of 32 KiB, in them chunks of a checksum, a length, a kind
// and data; a record is one chunk or several. The first block begins with a header. Unlike LevelDB's, the checksum is
// the plain CRC-32 of kind and data.

const (
	blockSize = 32 << 10
	chunkHead = 7 // uint32 checksum, uint16 length, kind; little endian
)

// fileHeader is the magic, a uint16 0xBEE1 and version 0.
var fileHeader = []byte(":W&B\xe1\xbe\x00")

// Kinds of chunks.
const (
	chunkFull   = 1
	chunkFirst  = 2
	chunkMiddle = 3
	chunkLast   = 4
)

// appendRecord appends a record to a file of the given size, in chunks.
func appendRecord(b []byte, size int64, record []byte) []byte {
	begin := len(b)
	for first := true; ; first = false {
		room := blockSize - int((size+int64(len(b)-begin))%blockSize)
		if room < chunkHead {
			b = append(b, make([]byte, room)...)
			room = blockSize
		}
		n := min(room-chunkHead, len(record))
		last := n == len(record)
		kind := byte(chunkMiddle)
		switch {
		case first && last:
			kind = chunkFull
		case first:
			kind = chunkFirst
		case last:
			kind = chunkLast
		}
		sum := crc32.Update(crc32.ChecksumIEEE([]byte{kind}), crc32.IEEETable, record[:n])
		b = binary.LittleEndian.AppendUint32(b, sum)
		b = binary.LittleEndian.AppendUint16(b, uint16(n))
		b = append(append(b, kind), record[:n]...)
		if record = record[n:]; last {
			return b
		}
	}
}

// readRecords returns the records of a file, up to one that is not complete. A damaged one is an error.
func readRecords(file []byte) ([][]byte, error) {
	if len(file) < len(fileHeader) {
		return nil, nil // killed in its first write
	}
	if string(file[:len(fileHeader)]) != string(fileHeader) {
		return nil, errors.New("wandb: not a .wandb file of version 0")
	}
	var records [][]byte
	var record []byte
	open := false
	for at := len(fileHeader); ; {
		if room := blockSize - at%blockSize; room < chunkHead {
			at += room
		}
		kind, data, err := chunkAt(file, at)
		if err != nil {
			return nil, err
		}
		if kind == 0 {
			return records, nil
		}
		starts := kind == chunkFull || kind == chunkFirst
		if starts == open {
			return nil, errors.New("wandb: the chunks of a record are damaged")
		}
		record = append(record, data...)
		if open = kind == chunkFirst || kind == chunkMiddle; !open {
			records, record = append(records, record), nil
		}
		at += chunkHead + len(data)
	}
}

// chunkAt returns the chunk at an offset; kind is 0 when the file ends within it.
func chunkAt(file []byte, at int) (kind byte, data []byte, err error) {
	if at+chunkHead > len(file) {
		return 0, nil, nil
	}
	n := int(binary.LittleEndian.Uint16(file[at+4:]))
	if at+chunkHead+n > len(file) {
		return 0, nil, nil
	}
	kind, data = file[at+6], file[at+chunkHead:at+chunkHead+n]
	sum := crc32.ChecksumIEEE(file[at+6 : at+chunkHead+n])
	if sum != binary.LittleEndian.Uint32(file[at:]) || kind < chunkFull || kind > chunkLast || n > blockSize-chunkHead {
		return 0, nil, errors.New("wandb: a chunk is damaged")
	}
	return kind, data, nil
}

type writer struct {
	track.File
	num int64 // of records
}

// create makes a file, which must not exist, with the records of another one.
func create(path string, records [][]byte) (*writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	w := &writer{File: track.File{F: f}}
	if err = w.Append(fileHeader); err == nil {
		err = w.write(records...)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

// write appends records, all or none, and numbers them.
func (w *writer) write(records ...[]byte) error {
	var b []byte
	for i, r := range records {
		b = appendRecord(b, w.Size+int64(len(b)), withNumber(r, w.num+int64(i)+1))
	}
	if err := w.Append(b); err != nil {
		return err
	}
	w.num += int64(len(records))
	return nil
}

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
		b = protofield.AppendBytes(b, 4, items(1, config))
	}
	b = protofield.AppendText(b, 8, name)
	b = protofield.AppendBytes(b, 17, protofield.AppendVarint(nil, 1, uint64(start.Unix())))
	return protofield.AppendBytes(nil, fieldRun, b)
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
	b := items(2, row)
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
	return protofield.AppendBytes(nil, fieldSummary, items(2, summary))
}

// items are the fields "item" of a history, and "update" of a summary and of a configuration. key is the field of keys.
func items(key protofield.Number, values map[string]any) []byte {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(values)) {
		item := protofield.AppendText(protofield.AppendText(nil, key, name), 16, asJSON(values[name]))
		b = protofield.AppendBytes(b, 1, item)
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

func rowOf(content []byte) (map[string]any, error) {
	row := map[string]any{}
	for f, err := range protofield.All(content) {
		if err != nil {
			return nil, err
		}
		if f.Number != 1 {
			continue
		}
		var key string
		var value []byte
		for f, err := range protofield.All(f.Data) {
			if err != nil {
				return nil, err
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
			return nil, fmt.Errorf("wandb: value of %q: %w", key, err)
		}
		row[key] = v
	}
	return row, nil
}

// asJSON returns the JSON of plain values.
func asJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(data)
}
