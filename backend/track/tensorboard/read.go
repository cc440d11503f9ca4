package tensorboard

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/goart-dev/art/internal/protofield"
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
