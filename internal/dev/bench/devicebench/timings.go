package devicebench

import (
	"slices"
	"time"
)

// timings are the durations of calls, in ascending order.
type timings []time.Duration

// measure calls f until the budget is spent, and at least least times.
func measure(budget time.Duration, least int, f func() error) (timings, error) {
	var t timings
	for start := time.Now(); len(t) < least || time.Since(start) < budget; {
		began := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		t = append(t, max(1, time.Since(began))) // some clocks are coarse, and rates divide by the time
	}
	slices.Sort(t)
	return t, nil
}

// best is the least time: other programs can only slow a call down.
func (t timings) best() time.Duration { return t[0] }

// median is the lower median.
func (t timings) median() time.Duration { return t[(len(t)-1)/2] }

// perSecond is a rate in units of 10^9, for the amount of one call.
func perSecond(amount float64, d time.Duration) float64 { return amount / float64(d.Nanoseconds()) }
