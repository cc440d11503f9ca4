package wandb

import (
	"bytes"
	"testing"
	"time"
)

// TestExitRecord_ClockJumps: a run whose clock was set back by a day has no runtime of 2^64 seconds.
func TestExitRecord_ClockJumps(t *testing.T) {
	if !bytes.Equal(exitRecord(false, -24*time.Hour), exitRecord(false, 0)) {
		t.Error("a runtime below 0 is not 0")
	}
}
