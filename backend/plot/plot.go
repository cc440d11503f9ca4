// Package plot draws what runs measured, as SVG or PNG: curves over steps, and bars that compare models.
//
//	rows, err := backend.History(ctx, model)
//	chart := plot.Chart{Title: "Tic-tac-toe", Y: "games not lost", Percent: true, Series: []plot.Series{
//		{Name: "training", Points: plot.History(rows, "train/not_lost"), Smooth: true},
//		{Name: "greedy", Points: plot.History(rows, "val/not_lost")},
//	}}
//	err = plot.Save("reward.svg", &chart)
//
// Colours are those of Okabe and Ito (2008), which people with any colour vision tell apart. The legend stands outside
// of the axes and hides no point.
package plot

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Drawing is a [Chart], a [Bars] or a [Packed].
type Drawing interface {
	// size is that of the whole drawing.
	size() (width, height vg.Length)
	// draw draws on a white canvas.
	draw(draw.Canvas) error
}

// Formats are the names of the formats that [Write] and [Save] know.
var Formats = []string{"svg", "png"}

// Save writes a drawing to a file. The format is that of the name's ending.
func Save(path string, d Drawing) error {
	var file bytes.Buffer
	if err := Write(&file, strings.TrimPrefix(filepath.Ext(path), "."), d); err != nil {
		return err
	}
	return os.WriteFile(path, file.Bytes(), 0o644)
}

// Write writes a drawing in one of [Formats].
func Write(w io.Writer, format string, d Drawing) error {
	if format != "svg" && format != "png" {
		return fmt.Errorf("plot: unknown format %q: want svg or png", format)
	}
	width, height := d.size()
	c, err := draw.NewFormattedCanvas(width, height, format)
	if err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	canvas := draw.New(c)
	canvas.SetColor(white)
	canvas.Fill(canvas.Rectangle.Path())
	if err := d.draw(canvas); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	var file bytes.Buffer
	if _, err := c.WriteTo(&file); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	// Viewers of SVG have fonts of their own.
	content := bytes.ReplaceAll(file.Bytes(), []byte("Liberation Sans"),
		[]byte("Liberation Sans,Arial,Helvetica,sans-serif"))
	_, err = w.Write(content)
	return err
}
