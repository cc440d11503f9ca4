package local

import (
	"context"
	"time"

	"github.com/goart-dev/art/internal/trainer"
)

// glance is how often a training that pauses looks whether requests are still being answered.
const glance = 5 * time.Millisecond

// pause returns what a training does after each micro-batch, nil for nothing.
func (b *Backend) pause() trainer.Pause {
	share := b.opts.TrainShare
	if share == 0 || share == 1 {
		return nil
	}
	return func(ctx context.Context, worked time.Duration) {
		rest(ctx, time.Duration(float64(worked)*(1-share)/share), b.answering)
	}
}

// rest waits for so long, but not longer than others are busy, or until ctx ends.
func rest(ctx context.Context, long time.Duration, busy func() bool) {
	for end := time.Now().Add(long); busy(); {
		left := min(time.Until(end), glance)
		if left <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(left):
		}
	}
}

// answering reports whether an engine has requests.
func (b *Backend) answering() bool {
	for _, s := range b.engines() {
		if s.Running+s.Waiting > 0 {
			return true
		}
	}
	return false
}
