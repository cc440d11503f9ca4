package tinker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
)

// journal has the requests and results of a run, in the order in which they came. A record is its length and CRC-32,
// four bytes each, then a kind, a sequence number (8 bytes) and a body. A record that was cut off by a crash ends the
// journal.
type journal struct {
	path string
	file *os.File
	size int64
}

// The kinds of records.
const (
	recordRequest = 'q' // body: operation, 0, media type, 0, body
	recordResult  = 'r' // body: JSON of a storedResult
	recordBase    = 'b' // the sequence number is the first whose request may follow
)

// maxRecord bounds the length that is believed when a journal is read.
const maxRecord = 1 << 30

type record struct {
	kind byte
	seq  int
	body []byte
}

// openJournal reads a journal, drops what was cut off, and opens it for more.
func openJournal(path string) (*journal, []record, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	j := &journal{path: path, file: file}
	var records []record
	in := bufio.NewReader(file)
	for {
		r, n, err := readRecord(in)
		if err != nil {
			break
		}
		records, j.size = append(records, r), j.size+n
	}
	if err = file.Truncate(j.size); err == nil {
		_, err = file.Seek(j.size, io.SeekStart)
	}
	return j, records, err
}

func readRecord(in io.Reader) (r record, n int64, err error) {
	var head [8]byte
	if _, err = io.ReadFull(in, head[:]); err != nil {
		return r, 0, err
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length < 9 || length > maxRecord {
		return r, 0, errors.New("no record")
	}
	content := make([]byte, length)
	if _, err = io.ReadFull(in, content); err != nil {
		return r, 0, err
	}
	if crc32.ChecksumIEEE(content) != binary.LittleEndian.Uint32(head[4:]) {
		return r, 0, errors.New("a damaged record")
	}
	r = record{content[0], int(binary.LittleEndian.Uint64(content[1:])), content[9:]}
	return r, int64(8 + length), nil
}

// append writes a record. With sync it is on disk when append returns.
func (j *journal) append(r record, sync bool) error {
	n, err := j.file.Write(r.encode())
	j.size += int64(n)
	if err == nil && sync {
		err = j.file.Sync()
	}
	return err
}

func (r record) encode() []byte {
	content := make([]byte, 8+9+len(r.body))
	content[8] = r.kind
	binary.LittleEndian.PutUint64(content[9:], uint64(r.seq))
	copy(content[17:], r.body)
	binary.LittleEndian.PutUint32(content, uint32(9+len(r.body)))
	binary.LittleEndian.PutUint32(content[4:], crc32.ChecksumIEEE(content[8:]))
	return content
}

// replace writes another content in place of the journal.
func (j *journal) replace(records []record) error {
	next, err := os.OpenFile(j.path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	size := int64(0)
	for _, r := range records {
		n, err := next.Write(r.encode())
		if size += int64(n); err != nil {
			return errors.Join(err, next.Close())
		}
	}
	if err := errors.Join(next.Sync(), os.Rename(j.path+".new", j.path)); err != nil {
		return errors.Join(err, next.Close())
	}
	old := j.file
	j.file, j.size = next, size
	return old.Close()
}

func (j *journal) close() error { return j.file.Close() }
