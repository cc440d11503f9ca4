package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/grpo"
)

// batch draws how an update was computed.
func (p *plotter) batch(names []string, stderr io.Writer) (_ plot.Drawing, err error) {
	if len(names) != 1 || p.bars {
		return nil, badUsage("--batch wants one RUN@STEP, without --bars")
	}
	run, step, err := findRun(names[0])
	if err != nil {
		return nil, err
	}
	if !strings.Contains(names[0], "@") {
		step--
	}
	if step < 0 {
		return nil, errors.New("the run has no update yet")
	}
	ctx := context.Background()
	backend, done, err := recompute(ctx, run, p.device, stderr)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	steps, err := backend.Packed(ctx, run.Dir(), step)
	if err != nil {
		return nil, err
	}
	if other := otherDevice(run.About().Device, backend.Device()); other != "" {
		fmt.Fprintf(stderr, "art: plot: %s, so micro-batches may have been others; "+
			"take the device of the run with --device\n", other)
	}
	drawing := &plot.Packed{Title: p.title}
	for i, list := range steps {
		for k, m := range list {
			drawing.Parts = append(drawing.Parts, partOf(m, fmt.Sprintf("update %d, micro-batch %d", i+1, k+1)))
		}
	}
	if len(drawing.Parts) == 0 {
		return nil, fmt.Errorf("step %d was trained on nothing", step)
	}
	return drawing, nil
}

// partOf is the drawing of a micro-batch.
func partOf(m *grpo.MicroBatch, name string) plot.Part {
	part := plot.Part{Rectangles: []plot.Rectangle{{Rows: m.Rows, Length: m.Length}}}
	for _, b := range m.Branches {
		if b.Rows > 0 {
			part.Rectangles = append(part.Rectangles, plot.Rectangle{Rows: b.Rows, Length: b.Length})
		}
	}
	used := make([]int, len(part.Rectangles))
	for _, r := range m.Placed {
		kind := plot.Read
		shares := func(other grpo.Row) bool { return other.Start > 0 && other.From == r.Sequence && other.Start > r.Start }
		if slices.ContainsFunc(m.Placed, shares) && r.Rectangle == 0 {
			kind = plot.Shared
		}
		to := &part.Rectangles[r.Rectangle]
		to.Spans = append(to.Spans, plot.Span{Row: used[r.Rectangle], End: r.End - r.Start, Kind: kind})
		used[r.Rectangle]++
	}
	for _, at := range m.Tokens.Position[:m.Tokens.NumReal] {
		addTrained(part.Rectangles, int(at))
	}
	part.Name = fmt.Sprintf("%s: %d tokens, %d trained", name, m.Layout.Tokens(), m.Tokens.NumReal)
	return part
}

// addTrained marks a token, counted through all rectangles.
func addTrained(list []plot.Rectangle, at int) {
	for i := range list {
		r := &list[i]
		if n := r.Rows * r.Length; at >= n {
			at -= n
			continue
		}
		row, column := at/r.Length, at%r.Length
		if last := len(r.Spans) - 1; last >= 0 && r.Spans[last] == (plot.Span{Row: row, Start: r.Spans[last].Start,
			End: column, Kind: plot.Trained}) {
			r.Spans[last].End++
			return
		}
		r.Spans = append(r.Spans, plot.Span{Row: row, Start: column, End: column + 1, Kind: plot.Trained})
		return
	}
}
