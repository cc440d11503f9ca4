package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/internal/basemodel"
)

// width of texts that are printed for people.
const width = 100

// label is the width of the first column of a report.
const label = 14

// bytesText writes bytes as MiB or GiB.
func bytesText(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// durationText writes a duration with three digits or more.
func durationText(d time.Duration) string {
	switch ns := float64(d.Nanoseconds()); {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.2f µs", ns/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.2f ms", ns/1e6)
	default:
		return fmt.Sprintf("%.2f s", ns/1e9)
	}
}

// wrap breaks a text into lines between words.
func wrap(text string, columns int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		size := len([]rune(word))
		switch {
		case i == 0:
		case column+1+size > columns:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += size
	}
	return b.String()
}

// writeJSON writes one indented object.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// writeResult writes a result as JSON, or else its text.
func writeResult(w io.Writer, asJSON bool, v any, text string) error {
	if asJSON {
		return writeJSON(w, v)
	}
	return write(w, text)
}

// write writes a text.
func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// sortedKeys are the keys of a map, in order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// warnings logs what a user should know of a run, and nothing else.
func warnings(stderr io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// progress is a status line on a terminal. It is silent elsewhere.
type progress struct{ w io.Writer }

func newProgress(w io.Writer) progress {
	if redraws(w) {
		return progress{w}
	}
	return progress{io.Discard}
}

// redraws reports whether lines can be drawn again: w is a terminal, and none that only prints.
func redraws(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// say replaces the line.
func (p progress) say(format string, args ...any) {
	fmt.Fprintf(p.w, "\r\x1b[K"+format, args...)
}

// liveLine tells on a terminal how far a gather or a training is; elsewhere it is silent.
func liveLine(w io.Writer) *art.Events {
	if redraws(w) {
		return terminal.New(&terminal.Options{Output: w})
	}
	return &art.Events{}
}

// stdin is standard input. Tests replace it.
var stdin io.Reader = os.Stdin

// readInput reads a file that the user named, "-" for standard input. Its errors say what to do.
func readInput(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	if basemodel.IsFolder(path) {
		return nil, fmt.Errorf("%s is a folder: name a file in it", path)
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: check the path", err)
	}
	return content, err
}

// parseIDs reads numbers separated by commas or spaces, in brackets or without. An empty text has none.
func parseIDs(text string) ([]int32, error) {
	text = strings.Trim(text, "[] \n")
	if text == "" {
		return nil, nil
	}
	var ids []int32
	for between := range strings.SplitSeq(text, ",") {
		parts := strings.Fields(between)
		if len(parts) == 0 {
			return nil, badUsage("--ids: there is no id between two commas, or after the last one, of %q", text)
		}
		for _, part := range parts {
			n, err := strconv.ParseInt(part, 10, 32)
			if err != nil || n < 0 {
				return nil, badUsage("--ids: %q is not an id; want numbers separated by commas", part)
			}
			ids = append(ids, int32(n))
		}
	}
	return ids, nil
}

// in adds the file or folder that an error is about. err may be nil.
func in(path string, err error) error {
	if err != nil {
		err = fmt.Errorf("%w (in %s)", err, path)
	}
	return err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readJSON(path string, v any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return in(path, json.Unmarshal(content, v))
}
