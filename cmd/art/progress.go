package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// progress is a line on a terminal that says what is going on. It is silent elsewhere.
type progress struct{ w io.Writer }

func newProgress(w io.Writer) progress {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return progress{w}
	}
	return progress{io.Discard}
}

// say replaces the line.
func (p progress) say(format string, args ...any) {
	fmt.Fprintf(p.w, "\r\x1b[K"+format, args...)
}
