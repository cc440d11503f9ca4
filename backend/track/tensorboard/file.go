package tensorboard

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/goart-dev/art/internal/protofield"
	"github.com/goart-dev/art/internal/track"
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

// create begins an event file in dir. Readers merge the files of a folder in the order of their names. The first file
// begins a session: readers take only later sessions for a restart, which purges.
func create(dir string) (*track.File, error) {
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
	w := &track.File{F: f}
	return w, w.Append(head)
}

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

// eventFiles returns the event files of a folder, in the order of their names. A folder that does not exist has none.
func eventFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	var files []string
	for _, entry := range entries { // sorted
		if strings.Contains(entry.Name(), "tfevents") {
			files = append(files, filepath.Join(dir, entry.Name()))
		}
	}
	return files, err
}

// readScalars returns the scalars in a folder, as TensorBoard shows them.
func readScalars(dir string) (track.Values, error) {
	files, err := eventFiles(dir)
	if err != nil {
		return nil, err
	}
	values := track.Values{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if err := addFile(values, data); err != nil {
			return nil, fmt.Errorf("%s: %w; move the file away", file, err)
		}
	}
	return values, nil
}

// addFile adds the scalars of a file, up to a record that is not complete.
func addFile(values track.Values, file []byte) error {
	for len(file) > 0 {
		data, rest, err := nextFrame(file)
		if errors.Is(err, errTorn) {
			return nil
		}
		if err == nil {
			err = addEvent(values, data)
		}
		if err != nil {
			return err
		}
		file = rest
	}
	return nil
}

// addEvent adds the scalars of an event, or forgets those from the step of a session that starts.
func addEvent(values track.Values, data []byte) error {
	step, start := 0, false
	var summaries [][]byte
	for f, err := range protofield.All(data) {
		if err != nil {
			return err
		}
		switch f.Number {
		case 2:
			step = int(int64(f.Bits))
		case 5:
			summaries = append(summaries, f.Data)
		case 7:
			start = string(f.Data) == "\x08\x01"
		}
	}
	if start {
		maps.DeleteFunc(values, func(at int, _ map[string]float64) bool { return at >= step })
	}
	for _, summary := range summaries {
		for f, err := range protofield.All(summary) {
			if err == nil && f.Number == 1 {
				err = addScalar(values, step, f.Data)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// addScalar adds a value, if it is a scalar.
func addScalar(values track.Values, step int, v []byte) error {
	tag, scalar, ok := "", float64(0), false
	for f, err := range protofield.All(v) {
		if err != nil {
			return err
		}
		switch f.Number {
		case 1:
			tag = string(f.Data)
		case 2:
			scalar, ok = float64(math.Float32frombits(uint32(f.Bits))), true
		}
	}
	if ok {
		if values[step] == nil {
			values[step] = map[string]float64{}
		}
		values[step][tag] = scalar
	}
	return nil
}
