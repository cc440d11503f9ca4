package otel

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Traces that wait are sent together: up to maxTraces, in requests of some maxSpans. Further ones than maxBatches are
// dropped.
const (
	maxBatches = 1024
	maxTraces  = 128
	maxSpans   = 512
	linger     = time.Second
)

// send exports traces, in as few requests as may be.
func (t *Tracker) send(ctx context.Context, traces []batch) (lost int, err error) {
	for len(traces) > 0 {
		var spans []sdk.ReadOnlySpan
		n := 0
		for n < len(traces) && len(spans) < maxSpans {
			spans = append(spans, traces[n].spans...)
			n++
		}
		failed, problem := t.export(ctx, spans, traces[:n])
		if problem != nil {
			lost, err = lost+failed, problem
		}
		traces = traces[n:]
	}
	return lost, err
}

// export sends the spans of traces, and then their scores.
func (t *Tracker) export(ctx context.Context, spans []sdk.ReadOnlySpan, traces []batch) (lost int, err error) {
	if err := t.exporter.ExportSpans(ctx, spans); err != nil {
		return len(traces), fmt.Errorf("traces were not sent: %w", err)
	}
	if t.opts.Scores == nil {
		return 0, nil
	}
	for _, trace := range traces {
		for _, s := range trace.scores {
			ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
			problem := t.opts.Scores.send(ctx, s)
			cancel()
			if problem != nil {
				lost, err = lost+1, fmt.Errorf("a score was not sent: %w", problem)
			}
		}
	}
	return lost, err
}

// finish sends what was counted.
func (t *Tracker) finish(ctx context.Context) error {
	err := t.metrics.close(ctx)
	if problem := t.exporter.Shutdown(ctx); problem != nil {
		err = errors.Join(err, fmt.Errorf("otel: %w", problem))
	}
	return err
}
