package local

import (
	"io"
	"os"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/trainer"
)

// bar is a progress bar. It draws nothing without a terminal.
type bar struct{ *progressbar.ProgressBar }

// progress is the bar of a training. A model with events draws what it likes.
func (b *Backend) progress(m *art.Model, title string, total int) *bar {
	if m.Options().Events != nil {
		return newBar(io.Discard, title, total)
	}
	return b.draw(title, total, progressbar.OptionShowCount())
}

// bytesProgress is the bar of a download, whose size is not known yet.
func (b *Backend) bytesProgress(title string) *bar {
	return b.draw(title, -1, progressbar.OptionShowBytes(true))
}

func (b *Backend) draw(title string, total int, unit progressbar.Option) *bar {
	w := b.progressOutput()
	if f, ok := w.(*os.File); ok && !redraws(f) {
		w = io.Discard
	}
	return newBar(w, title, total, unit)
}

// progressOutput is where progress is told.
func (b *Backend) progressOutput() io.Writer {
	switch {
	case b.opts.Progress != nil:
		return b.opts.Progress
	case redraws(os.Stderr):
		return os.Stderr
	}
	return io.Discard
}

// redraws reports whether a line of a file can be drawn again.
func redraws(f *os.File) bool { return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" }

func newBar(w io.Writer, title string, total int, more ...progressbar.Option) *bar {
	return &bar{progressbar.NewOptions(total, append(more,
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(title),
		progressbar.OptionSetVisibility(w != io.Discard),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(20),
	)...)}
}

// update returns a callback for the trainer that moves the bar and reports the metrics so far to the user.
func (p *bar) update(notify func(art.TrainProgress)) func(total int, soFar trainer.Report) {
	return func(total int, soFar trainer.Report) {
		done := soFar.Updates + soFar.Skipped
		p.ChangeMax(total)
		_ = p.Set(done) // a failure to draw is ignored
		if notify != nil {
			notify(art.TrainProgress{Done: done, Total: total, Metrics: reportMetrics(soFar)})
		}
	}
}

// set moves the bar of a download.
func (p *bar) set(done, total int64) {
	p.ChangeMax64(total)
	_ = p.Set64(done) // as in update
}

func (p *bar) finish() { _ = p.Finish() }
