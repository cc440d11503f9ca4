package hosted

import (
	"net/http"
	"testing"
	"time"
)

// TestRetryAfter_ClockJumps: a wait until a date is that of the server's clock, whatever the own one says.
func TestRetryAfter_ClockJumps(t *testing.T) {
	theirs := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for _, off := range []time.Duration{-24 * time.Hour, 0, 24 * time.Hour} {
		h := http.Header{}
		h.Set("Date", theirs.Format(http.TimeFormat))
		h.Set("Retry-After", theirs.Add(7*time.Second).Format(http.TimeFormat))
		if wait, ok := retryAfter(h, theirs.Add(off)); !ok || wait != 7*time.Second {
			t.Errorf("%v off: wait %v, %v", off, wait, ok)
		}
	}
	h := http.Header{"Retry-After": {theirs.Add(7 * time.Second).Format(http.TimeFormat)}}
	if wait, ok := retryAfter(h, theirs); !ok || wait != 7*time.Second {
		t.Errorf("without a date: wait %v, %v", wait, ok)
	}
}
