package devicebench

import (
	"errors"
	"testing"
	"time"
)

var errBroken = errors.New("broken")

// TestMeasure: a function is called at least as often as requested, and its error ends the measurement.
func TestMeasure(t *testing.T) {
	calls := 0
	times, err := measure(0, 3, func() error { calls++; return nil })
	if err != nil || calls != 3 || len(times) != 3 || times.best() > times.median() {
		t.Errorf("%d calls, %v, %v", calls, times, err)
	}
	if _, err := measure(0, 3, func() error { return errBroken }); err == nil {
		t.Error("no error")
	}
	calls = 0
	untilFive := func() error {
		if calls++; calls == 5 {
			return errBroken
		}
		return nil
	}
	if _, err := measure(time.Hour, 3, untilFive); err == nil || calls != 5 {
		t.Errorf("%d calls within the budget, want more than 3", calls)
	}
	if got := (timings{1, 2, 3, 40}).median(); got != 2 {
		t.Errorf("the median is %v", got)
	}
	if got := perSecond(5e9, time.Second); got != 5 {
		t.Errorf("%v per second, want 5", got)
	}
}
