package dash

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/dataset"
	"github.com/goart-dev/art/internal/quantity"
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
	path := filepath.Join(dir, starsName)
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	for text := range bytes.Lines(content) {
		if text = bytes.TrimRight(text, "\r\n"); len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var line struct {
			Star starOf `json:"star"`
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, nil, fmt.Errorf("%s: line %d: %w; correct the file or move it away", path, len(lines)+1, err)
		}
		if line.Star.Format > starFormat {
			return nil, nil, fmt.Errorf("%w: %s: line %d has format %d, and this version of art reads formats up to %d; "+
				"upgrade art", art.ErrUnsupported, path, len(lines)+1, line.Star.Format, starFormat)
		}
		lines, of = append(lines, text), append(of, line.Star)
	}
	return lines, of, err
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

// starsData are the starred trajectories of a run.
type starsData struct {
	Run, Path string
	Rows      []starRow
}

// starRow is one of them.
type starRow struct {
	starOf
	Link  string
	First string // what was asked
	Last  string // what was answered in the end
}

// starsPage lists the starred trajectories of a run.
func (h *Handler) starsPage(r *http.Request) (*page, error) {
	found, err := h.store.find(r.URL.Query().Get("run"))
	if err != nil {
		return nil, err
	}
	lines, of, err := readStars(found.Dir())
	if err != nil {
		return nil, err
	}
	d := &starsData{Run: found.name, Path: found.Dir() + "/" + starsName}
	for i, line := range lines {
		var example art.Example
		if err := json.Unmarshal(line, &example); err != nil {
			return nil, err
		}
		row := starRow{starOf: of[i], Link: link("group", "run", found.name, "split", of[i].Split, "step", of[i].Step,
			"group", of[i].Group) + fmt.Sprintf("#t%d", of[i].Trajectory)}
		for _, m := range example.Messages {
			if m.Role == art.RoleUser {
				row.First = cmp.Or(row.First, oneLine(m.Content, 120))
			}
			if m.Role == art.RoleAssistant && m.Content != "" {
				row.Last = oneLine(m.Content, 120)
			}
		}
		d.Rows = append(d.Rows, row)
	}
	return &page{name: "stars.html", Title: "Starred in " + found.name, Runs: []string{found.name}, Data: d,
		Crumbs: []crumb{{found.name, link("run", "run", found.name)}, {"starred", ""}}}, nil
}

// starredOf returns which trajectories of a group are starred.
func (h *Handler) starredOf(at *place, group int) (map[int]bool, error) {
	list := map[int]bool{}
	if !h.opts.Stars {
		return list, nil
	}
	_, of, err := readStars(at.run.Dir())
	for _, s := range of {
		if s.Split == at.Split && s.Step == at.Step && s.Group == group {
			list[s.Trajectory] = true
		}
	}
	return list, err
}

// starred takes the form of a star.
func (h *Handler) starred(r *http.Request) (to string, err error) {
	if !h.opts.Stars {
		return "", &httpError{http.StatusForbidden,
			"the page is read-only: art runs dash --stars lets people star trajectories"}
	}
	found, err := h.store.find(r.PostForm.Get("run"))
	if err != nil {
		return "", err
	}
	of := starOf{Split: r.PostForm.Get("split")}
	for name, field := range map[string]*int{"step": &of.Step, "group": &of.Group, "trajectory": &of.Trajectory} {
		if *field, err = strconv.Atoi(r.PostForm.Get(name)); err != nil || *field < 0 {
			return "", badRequest("%s is %q, want a number", name, r.PostForm.Get(name))
		}
	}
	if !slices.Contains(found.splits[of.Split], of.Step) {
		return "", notFound("%s has no trajectories of split %q and step %d", found.name, of.Split, of.Step)
	}
	g, err := found.ReadGroup(of.Split, of.Step, of.Group)
	if err != nil {
		return "", err
	}
	if of.Trajectory >= len(g.Trajectories) {
		return "", notFound("the group has %s", quantity.Of(len(g.Trajectories), "trajectory"))
	}
	t := g.Trajectories[of.Trajectory]
	if err := h.stars.set(found.Dir(), of, t, r.PostForm.Get("on") != ""); err != nil {
		return "", err
	}
	return link("group", "run", found.name, "split", of.Split, "step", of.Step, "group", of.Group,
		"color", r.PostForm.Get("color"), "to", r.PostForm.Get("to"), "order", r.PostForm.Get("order"),
		"from", r.PostForm.Get("from")) + fmt.Sprintf("#t%d", of.Trajectory), nil
}
