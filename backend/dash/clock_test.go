package dash

import (
	"strings"
	"testing"
	"time"
)

// TestRun_ClockJumps: a run that was stored before the clock was set by a day is not active for a day, and is not shown
// with a time below zero.
func TestRun_ClockJumps(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for off, active := range map[time.Duration]bool{-24 * time.Hour: false, -time.Second: true, 0: true, time.Second: true,
		24 * time.Hour: false} {
		r := &run{stored: now.Add(off)}
		if r.isActive(now) != active {
			t.Errorf("stored %v from now: active %v", off, !active)
		}
		if text := ago(r.stored, now); strings.Contains(text, " -") || strings.HasPrefix(text, "-") {
			t.Errorf("stored %v from now: %s", off, text)
		}
	}
}
