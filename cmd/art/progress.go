package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/track/terminal"
)

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
