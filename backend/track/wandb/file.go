package wandb

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
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
		b = appendChunk(b, kindOf(first, n == len(record)), record[:n])
		record = record[n:]
		if len(record) == 0 {
			return b
		}
	}
}

func kindOf(first, last bool) byte {
	switch {
	case first && last:
		return chunkFull
	case first:
		return chunkFirst
	case last:
		return chunkLast
	}
	return chunkMiddle
}

func appendChunk(b []byte, kind byte, data []byte) []byte {
	sum := crc32.Update(crc32.ChecksumIEEE([]byte{kind}), crc32.IEEETable, data)
	b = binary.LittleEndian.AppendUint32(b, sum)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(data)))
	return append(append(b, kind), data...)
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

// writer appends to a file.
type writer struct {
	f    *os.File
	size int64 // of complete records
	num  int64 // of records
}

// create makes a file, which must not exist, with the records of another one.
func create(path string, records [][]byte) (*writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	w := &writer{f: f}
	if err := w.writeAt(fileHeader); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := w.write(records...); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return w, nil
}

// write appends records, all or none, and numbers them.
func (w *writer) write(records ...[]byte) error {
	var b []byte
	for i, r := range records {
		b = appendRecord(b, w.size+int64(len(b)), withNumber(r, w.num+int64(i)+1))
	}
	if err := w.writeAt(b); err != nil {
		return err
	}
	w.num += int64(len(records))
	return nil
}

// writeAt appends bytes. After an error, such as a full disk, it takes back a part that was written.
func (w *writer) writeAt(b []byte) error {
	if _, err := w.f.WriteAt(b, w.size); err != nil {
		return errors.Join(err, w.f.Truncate(w.size))
	}
	w.size += int64(len(b))
	return nil
}

func (w *writer) close() error { return errors.Join(w.f.Sync(), w.f.Close()) }
