package main

import (
	"slices"
	"time"
)

// timings are how long the calls of a function took.
type timings []time.Duration

// measure calls f until the budget is spent, and so many times at least.
func measure(budget time.Duration, least int, f func() error) (timings, error) {
	var t timings
	for start := time.Now(); len(t) < least || time.Since(start) < budget; {
		began := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		t = append(t, max(1, time.Since(began))) // some clocks are coarse, and rates divide by it
	}
	slices.Sort(t)
	return t, nil
}

// best is the least time: other programs only ever add to it.
func (t timings) best() time.Duration { return t[0] }

// median is the time that half of the calls took at most.
func (t timings) median() time.Duration { return t[(len(t)-1)/2] }

// perSecond is a rate in units of 10^9, given the amount of one call.
func perSecond(amount float64, d time.Duration) float64 { return amount / float64(d.Nanoseconds()) }
