package art_test

import (
	"context"
	"testing"
	"time"
	"unsafe"

	"github.com/goart-dev/art"
)

// beforeJump returns a time of this process as it is read when the clock is set by a jump afterwards: its wall time is
// that before, and its reading of the monotonic clock is right.
func beforeJump(jump time.Duration) time.Time {
	at := time.Now()
	// Package time keeps the seconds of the wall clock in the bits from 30 on of the first word.
	*(*int64)(unsafe.Pointer(&at)) -= int64(jump/time.Second) << 30
	return at
}

// TestTrajectory_ClockJumps: a clock that is set by a day while a rollout runs does not change how long it took, and a
// duration is never negative.
func TestTrajectory_ClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		began := beforeJump(jump)
		if wall := time.Now().Round(0).Sub(began.Round(0)); (wall - jump).Abs() > time.Minute {
			t.Fatalf("the wall clock has moved by %v, want %v", wall, jump)
		}
		x := art.NewTrajectory()
		art.SetBegan(x, began)
		x.Finish()
		if x.Duration < 0 || x.Duration > time.Minute {
			t.Errorf("jump by %v: it took %v", jump, x.Duration)
		}
		literal := &art.Trajectory{Start: began.Round(0)} // what is stored, or read, has no reading
		literal.Finish()
		if literal.Duration < 0 {
			t.Errorf("jump by %v: it took %v", jump, literal.Duration)
		}
	}
}

// TestTrajectory_FinishOwnStart: a start that was set by hand counts.
func TestTrajectory_FinishOwnStart(t *testing.T) {
	x := art.NewTrajectory()
	x.Start = x.Start.Add(-time.Hour)
	if x.Finish(); (x.Duration - time.Hour).Abs() > time.Minute {
		t.Errorf("it took %v, want an hour", x.Duration)
	}
}

// TestGather_DurationWithoutStart: a trajectory that has no start has that of its rollout.
func TestGather_DurationWithoutStart(t *testing.T) {
	groups, err := art.GatherGroups(t.Context(), []int{0}, func(context.Context, int) (*art.Trajectory, error) {
		time.Sleep(20 * time.Millisecond)
		return &art.Trajectory{}, nil
	}, &art.GatherOptions{GroupSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	x := groups[0].Trajectories[0]
	if x.Duration < 20*time.Millisecond || x.Duration > time.Minute || time.Since(x.Start) > time.Minute {
		t.Errorf("it began at %v and took %v", x.Start, x.Duration)
	}
}
