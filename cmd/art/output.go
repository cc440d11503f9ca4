package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/goart-dev/art/internal/quantity"
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

// write writes a text.
func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// sizeText writes bytes.
func sizeText(bytes int64) string { return quantity.Bytes(bytes) }

// warnings logs what a user should know of a run, and nothing else.
func warnings(stderr io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
