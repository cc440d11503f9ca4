package tensorboard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// castagnoli is the polynomial of the checksums.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum of a TFRecord: a rotated CRC-32C, so that a checksum of checksums is still one.
func masked(data []byte) uint32 {
	crc := crc32.Checksum(data, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// appendFrame appends a TFRecord: length, checksum of it, data, checksum of the data; little endian.
func appendFrame(b, data []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, masked(b[len(b)-8:]))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, masked(data))
}

// errTorn is the error of a file whose last record is not complete.
var errTorn = errors.New("tensorboard: the record is not complete")

// maxRecord bounds a record that is read.
const maxRecord = 1 << 30

// nextFrame returns the data of the first record of b, and what follows it. It is errTorn when b ends within it.
func nextFrame(b []byte) (data, rest []byte, err error) {
	if len(b) < 12 {
		return nil, nil, errTorn
	}
	n := binary.LittleEndian.Uint64(b)
	if binary.LittleEndian.Uint32(b[8:]) != masked(b[:8]) || n > maxRecord {
		return nil, nil, errors.New("tensorboard: the length of a record is damaged")
	}
	if uint64(len(b)) < 12+n+4 {
		return nil, nil, errTorn
	}
	data, rest = b[12:12+n], b[12+n+4:]
	if binary.LittleEndian.Uint32(b[12+n:]) != masked(data) {
		return nil, nil, errors.New("tensorboard: a record is damaged")
	}
	return data, rest, nil
}

// numFiles makes the names of the files of this process different.
var numFiles atomic.Int64

// writer appends to a file.
type writer struct {
	f    *os.File
	size int64 // of complete records
}

// create begins an event file in dir. Readers merge the files of a folder in the order of their names. The first file
// begins a session: readers take only later sessions for a restart, which purges.
func create(dir string) (*writer, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	others, err := eventFiles(dir)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	name := fmt.Sprintf("events.out.tfevents.%010d.%s.%d.%d",
		after(others, time.Now().Unix()), strings.ReplaceAll(host, "/", "_"), os.Getpid(), numFiles.Add(1))
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	head := appendFrame(nil, fileVersion(time.Now()))
	if len(others) == 0 {
		head = appendFrame(head, event{wall: time.Now(), start: true}.encode())
	}
	w := &writer{f: f}
	return w, w.write(head)
}

// append writes events, all or none.
func (w *writer) append(events []event) error {
	var b []byte
	for _, e := range events {
		b = appendFrame(b, e.encode())
	}
	return w.write(b)
}

// write appends records. After an error, such as a full disk, it takes back a part that was written.
func (w *writer) write(b []byte) error {
	if _, err := w.f.WriteAt(b, w.size); err != nil {
		return errors.Join(err, w.f.Truncate(w.size))
	}
	w.size += int64(len(b))
	return nil
}

func (w *writer) close() error { return errors.Join(w.f.Sync(), w.f.Close()) }

// after is a time in seconds for the name of a new file: now, or later than those of the other files. For TensorBoard
// reads files in the order of their names, and a process that continues at once may have the smaller number.
func after(others []string, now int64) int64 {
	for _, name := range others {
		var at int64
		if _, err := fmt.Sscanf(filepath.Base(name), "events.out.tfevents.%d.", &at); err == nil {
			now = max(now, at+1)
		}
	}
	return now
}
