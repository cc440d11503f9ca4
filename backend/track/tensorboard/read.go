package tensorboard

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/goart-dev/art/internal/track"
)

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
	err := fields(data, func(field protowire.Number, number uint64, inner []byte) {
		switch field {
		case 2:
			step = int(int64(number))
		case 5:
			summaries = append(summaries, inner)
		case 7:
			start = string(inner) == "\x08\x01"
		}
	})
	if start {
		maps.DeleteFunc(values, func(at int, _ map[string]float64) bool { return at >= step })
	}
	for _, summary := range summaries {
		var list [][]byte
		if err := fields(summary, func(field protowire.Number, _ uint64, inner []byte) {
			if field == 1 {
				list = append(list, inner)
			}
		}); err != nil {
			return err
		}
		for _, v := range list {
			if err := addScalar(values, step, v); err != nil {
				return err
			}
		}
	}
	return err
}

// addScalar adds a value, if it is a scalar.
func addScalar(values track.Values, step int, v []byte) error {
	tag, scalar, ok := "", float64(0), false
	err := fields(v, func(field protowire.Number, number uint64, inner []byte) {
		switch field {
		case 1:
			tag = string(inner)
		case 2:
			scalar, ok = float64(math.Float32frombits(uint32(number))), true
		}
	})
	if ok {
		if values[step] == nil {
			values[step] = map[string]float64{}
		}
		values[step][tag] = scalar
	}
	return err
}

// fields calls f with each field of a message: its number, and its bits or its bytes.
func fields(b []byte, f func(field protowire.Number, number uint64, inner []byte)) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		number, inner := uint64(0), []byte(nil)
		switch kind {
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var x uint32
			x, n = protowire.ConsumeFixed32(b)
			number = uint64(x)
		case protowire.Fixed64Type:
			number, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			inner, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		f(field, number, inner)
		b = b[n:]
	}
	return nil
}
