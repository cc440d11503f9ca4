package tenancy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/goart-dev/art/internal/stable"
)

// Journal has the operations of a run, and their results, in the order in which they came. The file is journalMagic and
// then records. It is for one goroutine at a time.
type Journal struct {
	path string
	disk stable.Disk
	file *os.File
	size int64 // of what counts
	fault
}

// fault is what has to be repaired before anything is appended.
type fault int

const (
	none    fault = iota
	cutOff        // a part of a record may be behind what counts
	doubted       // fsync has failed: what was written may be lost though it can still be read
)

// The kinds of records.
const (
	RecordRequest = 'q' // an operation; the body is the caller's
	RecordResult  = 'r' // its result; the body is the caller's
	RecordBase    = 'b' // the sequence number is the first whose request may follow
	RecordBegun   = 'a' // an operation was begun
	RecordEnded   = 'e' // an operation that was begun has not ended the process
)

// Record is one of them.
type Record struct {
	Kind byte
	Seq  int
	Body []byte
}

// OpenJournal reads a journal, cuts off what an interrupted change has left at its end, and opens it for more. One that
// is damaged elsewhere is left as it is, and the error is a [DamageError].
func (f *Folder) OpenJournal(parts ...string) (*Journal, []Record, error) {
	j := &Journal{path: f.Path(parts...), disk: f.disk}
	data, err := os.ReadFile(j.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	parsed, err := parseJournal(data)
	if err != nil {
		return nil, nil, err
	}
	if !parsed.current { // it is new, or of an earlier version
		err = j.Replace(parsed.records)
	} else if err = j.open(); err == nil {
		j.size, j.fault = parsed.size, cutOff
		err = j.repair()
	}
	if err != nil {
		return nil, nil, errors.Join(err, j.Close())
	}
	return j, parsed.records, nil
}

// open opens the file, which exists.
func (j *Journal) open() (err error) {
	j.file, err = os.OpenFile(j.path, os.O_RDWR, 0)
	return err
}

// Size is the length of the file in bytes.
func (j *Journal) Size() int64 { return j.size }

// Append writes a record. With sync it is on disk when Append returns. After an error the record does not count; and
// when the journal could not be cut back to what counts, or not be synced, every Append is an error until it was.
func (j *Journal) Append(r Record, sync bool) error {
	if err := j.repair(); err != nil {
		return fmt.Errorf("nothing is stored until an earlier failure is repaired: %w", err)
	}
	data := r.encode()
	write := func() error {
		_, err := j.file.WriteAt(data, j.size)
		return err
	}
	if err := j.disk.Do("write", j.path, write); err != nil {
		j.fault = cutOff
		return errors.Join(err, j.repair())
	}
	if sync {
		if err := j.disk.Do("sync", j.path, j.file.Sync); err != nil {
			j.fault = doubted
			return err
		}
	}
	j.size += int64(len(data))
	return nil
}

// repair makes the file what counts.
func (j *Journal) repair() error {
	switch j.fault {
	case cutOff:
		if err := j.disk.Do("truncate", j.path, func() error { return j.file.Truncate(j.size) }); err != nil {
			return err
		}
		j.fault = none
	case doubted: // that a second fsync succeeds says nothing: the kernel may have dropped the pages
		records, err := j.Read()
		if err != nil {
			return err
		}
		return j.Replace(records)
	}
	return nil
}

// Read reads what counts again from the file.
func (j *Journal) Read() ([]Record, error) {
	file, err := os.Open(j.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := make([]byte, j.size)
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, err
	}
	parsed, err := parseJournal(data)
	if err == nil && parsed.size != j.size {
		err = &DamageError{Offset: parsed.size, Records: len(parsed.records)}
	}
	return parsed.records, err
}

// Replace writes another content in place of the journal's. After an error the journal has either, and nothing is
// appended until it was read and written again.
func (j *Journal) Replace(records []Record) error {
	j.fault = doubted
	if err := j.Close(); err != nil { // Windows does not replace what is open
		return err
	}
	size := int64(len(journalMagic))
	err := j.disk.ReplaceWith(j.path, func(w io.Writer) error {
		_, err := w.Write(journalMagic)
		for _, r := range records {
			if err != nil {
				return err
			}
			data := r.encode()
			size += int64(len(data))
			_, err = w.Write(data)
		}
		return err
	})
	if err := errors.Join(err, j.open()); err != nil {
		if info, statErr := os.Stat(j.path); statErr == nil && info.Size() == size {
			j.size = size // only the folder could not be synced
		}
		return err
	}
	j.size, j.fault = size, none
	return nil
}

// Close closes the file.
func (j *Journal) Close() error {
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

// journalMagic begins a journal. Read as the length of a record of the first version, which had no magic, it is more
// than maxRecord, also when one of its bits is flipped.
var journalMagic = []byte("art\xc1jrn2")

const (
	// headerSize is that of the header of a record: the length of its content, the CRC-32 of that, and the CRC-32 of these
	// two, four bytes each.
	headerSize = 12
	// oldHeaderSize is that of the first version, without the last.
	oldHeaderSize = 8
	// minContent is that of a content without a body: a kind, which is not 0, and a sequence number of 8 bytes.
	minContent = 9
	maxRecord  = 1 << 30
)

func (r Record) encode() []byte {
	data := make([]byte, headerSize+minContent+len(r.Body))
	content := data[headerSize:]
	content[0] = r.Kind
	binary.LittleEndian.PutUint64(content[1:], uint64(r.Seq))
	copy(content[minContent:], r.Body)
	binary.LittleEndian.PutUint32(data, uint32(len(content)))
	binary.LittleEndian.PutUint32(data[4:], crc32.ChecksumIEEE(content))
	binary.LittleEndian.PutUint32(data[8:], crc32.ChecksumIEEE(data[:8]))
	return data
}

// DamageError says where a journal is damaged.
type DamageError struct {
	Offset  int64
	Records int
}

// Error implements error.
func (e *DamageError) Error() string {
	return fmt.Sprintf("the journal is damaged at byte %d, behind %d records; it was left as it is: restore it from a "+
		"backup, or cut it off there to go on without what comes after", e.Offset, e.Records)
}

// parsedJournal is what a file has.
type parsedJournal struct {
	records []Record
	size    int64 // of the magic and the records
	current bool  // it has the magic of this version
}

// parseJournal reads a journal. What an interrupted change can leave at the end is left out; any other damage is a
// [DamageError].
func parseJournal(data []byte) (p parsedJournal, err error) {
	header := oldHeaderSize
	if p.current = bytes.HasPrefix(data, journalMagic); p.current {
		p.size, header = int64(len(journalMagic)), headerSize
	} else if bytes.HasPrefix(journalMagic, data) {
		return p, nil // it is empty, or was cut off in the magic
	}
	budget := int64(1 << 32)
	for {
		rest := data[p.size:]
		r, n, state := readRecord(rest, header, &budget)
		switch {
		case state == whole:
			p.records, p.size = append(p.records, r), p.size+n
		case state == torn && !anyRecord(rest, header, &budget):
			return p, nil
		default:
			return p, &DamageError{p.size, len(p.records)}
		}
	}
}

// recordState is what was found where a record may begin.
type recordState int

const (
	whole   recordState = iota
	torn                // the end of the file, or a record that goes beyond it
	damaged             // anything else
)

// readRecord reads the record at the beginning of data. budget is the number of bytes that may be summed up in vain.
func readRecord(data []byte, header int, budget *int64) (r Record, n int64, state recordState) {
	if len(bytes.TrimRight(data[:min(len(data), header+1)], "\x00")) < header && allZero(data[min(len(data), header):]) {
		return r, 0, torn // also where zeros are what the file system has for what was not written
	}
	length, sum := int64(binary.LittleEndian.Uint32(data)), binary.LittleEndian.Uint32(data[4:])
	content := data[header:]
	checked := header == headerSize
	if length < minContent || length > maxRecord ||
		checked && crc32.ChecksumIEEE(data[:8]) != binary.LittleEndian.Uint32(data[8:]) {
		return r, 0, damaged
	}
	if length > int64(len(content)) {
		if !checked && crc32.ChecksumIEEE(content) == sum {
			return r, 0, damaged // the record is whole, and its length is wrong
		}
		return r, 0, torn
	}
	content = content[:length]
	if crc32.ChecksumIEEE(content) != sum {
		*budget -= length
		return r, 0, damaged
	}
	r = Record{content[0], int(binary.LittleEndian.Uint64(content[1:])), content[minContent:]}
	return r, int64(header) + length, whole
}

func allZero(data []byte) bool { return len(bytes.TrimRight(data, "\x00")) == 0 }

// anyRecord reports whether a record begins anywhere in data, behind the first byte. When that cannot be told within
// the budget, one does.
func anyRecord(data []byte, header int, budget *int64) bool {
	for at := 1; at+header+minContent <= len(data); at++ {
		length := int64(binary.LittleEndian.Uint32(data[at:]))
		if length < minContent || length > int64(len(data)-at-header) || data[at+header] == 0 {
			continue
		}
		if _, _, state := readRecord(data[at:], header, budget); state == whole || *budget < 0 {
			return true
		}
	}
	return false
}
