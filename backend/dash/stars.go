package dash

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/dataset"
)

// starsName is the file of a run with the trajectories that people have starred, one for each line: an [art.Example]
// with a field more, the [starOf].
const starsName = "stars.jsonl"

// starFormat is the format of a line. Lines that a newer version wrote are refused; they stay as they are.
const starFormat = 1

// starOf says which trajectory was starred, and which of its histories the line is.
type starOf struct {
	Format     int     `json:"format"` // see starFormat; 0 in lines before v0.1.0, which are of format 1
	Split      string  `json:"split"`
	Step       int     `json:"step"`
	Group      int     `json:"group"`
	Trajectory int     `json:"trajectory"`
	History    int     `json:"history"`
	Reward     float64 `json:"reward"`
}

// same reports whether both are of one trajectory.
func (s starOf) same(o starOf) bool {
	return s.Split == o.Split && s.Step == o.Step && s.Group == o.Group && s.Trajectory == o.Trajectory
}

// starLine is a line of the file.
type starLine struct {
	Messages []art.Message `json:"messages"`
	Tools    []art.Tool    `json:"tools,omitempty"`
	Star     starOf        `json:"star"`
}

// stars changes the files of starred trajectories, one at a time.
type stars struct{ mu sync.Mutex }

// readStars returns the lines of a run and what each is of. A line that cannot be read is an error: the file is not to
// be written again without it.
func readStars(dir string) (lines [][]byte, of []starOf, err error) {
	content, err := os.ReadFile(filepath.Join(dir, starsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	scanner := bufio.NewScanner(bytes.NewReader(content))
	scanner.Buffer(nil, len(content)+1)
	for scanner.Scan() {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		var line struct {
			Star starOf `json:"star"`
		}
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return nil, nil, fmt.Errorf("%s: line %d: %w; correct the file or move it away",
				filepath.Join(dir, starsName), len(lines)+1, err)
		}
		if line.Star.Format > starFormat {
			return nil, nil, fmt.Errorf("%w: %s: line %d has format %d, and this version of art reads formats up to %d; "+
				"upgrade art", art.ErrUnsupported, filepath.Join(dir, starsName), len(lines)+1, line.Star.Format, starFormat)
		}
		lines, of = append(lines, bytes.Clone(scanner.Bytes())), append(of, line.Star)
	}
	return lines, of, errors.Join(err, scanner.Err())
}

// set stars a trajectory or takes its star away.
func (s *stars) set(dir string, of starOf, t *art.Trajectory, on bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines, known, err := readStars(dir)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for i, line := range lines {
		if !known[i].same(of) {
			out.Write(line)
			out.WriteByte('\n')
		}
	}
	if on {
		of.Format, of.Reward = starFormat, t.Reward
		for i, h := range t.Histories() {
			of.History = i
			if err := dataset.WriteJSONL(&out, starLine{h.Messages, h.Tools, of}); err != nil {
				return err
			}
		}
	}
	return replaceFile(filepath.Join(dir, starsName), out.Bytes())
}

// replaceFile writes a file such that a kill leaves the old or the new one.
func replaceFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
