package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goart-dev/art/backend/plot"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/quantity"
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
		fmt.Fprintf(stderr, "art: runs plot: %s, so micro-batches may have been others; "+
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
	for at, n := range readers(m) {
		switch {
		case n == 1:
			addToken(part.Rectangles, at, plot.Read)
		case n > 1:
			addToken(part.Rectangles, at, plot.Shared)
		}
	}
	for _, at := range m.Tokens.Position[:m.Tokens.NumReal] {
		addToken(part.Rectangles, int(at), plot.Trained)
	}
	part.Name = fmt.Sprintf("%s: %s, %d trained", name, quantity.Of(m.Layout.Tokens(), "token"), m.Tokens.NumReal)
	return part
}

// readers counts the sequences that read each token of a micro-batch, none of padding. A sequence is read up to the
// token that its last trained one follows.
func readers(m *grpo.MicroBatch) []int {
	counts := make([]int, m.Layout.Tokens())
	of := m.Tokens.Sequence[:m.Tokens.NumReal]
	for n, position := range m.Tokens.Position[:len(of)] {
		if n+1 < len(of) && of[n+1] == of[n] {
			continue
		}
		for _, at := range attended(m, int(position)) {
			counts[at]++
		}
	}
	return counts
}

// attended lists the tokens that one attends to, itself included.
func attended(m *grpo.MicroBatch, at int) (list []int32) {
	from, starts, keys := m.Rows*m.Length, m.Starts, m.Keys
	for _, b := range m.Branches {
		if at >= from && at < from+b.Rows*b.Length {
			row, column := (at-from)/b.Length, (at-from)%b.Length
			return keys[row*b.Keys:][:int(starts[row])+column+1]
		}
		from, starts, keys = from+b.Rows*b.Length, starts[b.Rows:], keys[b.Rows*b.Keys:]
	}
	for i := at / m.Length * m.Length; i <= at; i++ {
		list = append(list, int32(i))
	}
	return list
}

// addToken marks a token, counted through all rectangles.
func addToken(list []plot.Rectangle, at int, kind plot.Kind) {
	for i := range list {
		r := &list[i]
		if n := r.Rows * r.Length; at >= n {
			at -= n
			continue
		}
		row, column := at/r.Length, at%r.Length
		if last := len(r.Spans) - 1; last >= 0 && r.Spans[last] == (plot.Span{Row: row, Start: r.Spans[last].Start,
			End: column, Kind: kind}) {
			r.Spans[last].End++
			return
		}
		r.Spans = append(r.Spans, plot.Span{Row: row, Start: column, End: column + 1, Kind: kind})
		return
	}
}
