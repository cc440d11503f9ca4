package otel

import (
	"context"
	"fmt"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Batches that wait are sent together, up to maxSpans.
const (
	maxSpans = 512
	linger   = time.Second
)

// send exports batches until there are no more.
func (t *Tracker) send() {
	ticker := time.NewTicker(linger)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			t.sendWaiting()
		case <-t.batches.Closed():
			for len(t.batches.Items()) > 0 {
				t.sendWaiting()
			}
			if err := t.exporter.Shutdown(t.ctx); err != nil && t.err == nil {
				t.err = fmt.Errorf("otel: %w", err)
			}
			return
		}
	}
}

// sendWaiting sends what waits, in as few requests as may be.
func (t *Tracker) sendWaiting() {
	var spans []sdk.ReadOnlySpan
	var scores []Score
	n := 0
	for len(t.batches.Items()) > 0 && len(spans) < maxSpans {
		b := <-t.batches.Items()
		spans, scores = append(spans, b.spans...), append(scores, b.scores...)
		n++
	}
	if n == 0 {
		return
	}
	if err := t.exporter.ExportSpans(t.ctx, spans); err != nil {
		t.failed("traces were not sent", n, err)
		return
	}
	if t.opts.Scores == nil {
		return
	}
	for _, s := range scores {
		ctx, cancel := context.WithTimeout(t.ctx, t.opts.Timeout)
		err := t.opts.Scores.send(ctx, s)
		cancel()
		if err != nil {
			t.failed("a score was not sent", 1, err)
		}
	}
}

// failed counts n batches that were lost.
func (t *Tracker) failed(what string, n int, err error) {
	t.batches.Lose(n)
	if t.err == nil {
		t.opts.Logger.Warn(what, "error", err)
	}
	t.err = fmt.Errorf("otel: %s: %w", what, err)
}
