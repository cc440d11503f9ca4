package art_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goart-dev/art"
)

// A trajectory comes out of a call stack that returns none.
func TestCaptureYield(t *testing.T) {
	deep := func(ctx context.Context) error { return art.Yield(ctx, rewarded(3)) }
	got, err := art.CaptureYield(t.Context(), deep)
	if err != nil || got.Reward != 3 {
		t.Fatalf("%v, %v", got, err)
	}
	boom := errors.New("boom")
	got, err = art.CaptureYield(t.Context(), func(ctx context.Context) error { return errors.Join(deep(ctx), boom) })
	if !errors.Is(err, boom) || got == nil {
		t.Errorf("with an error behind: %v, %v", got, err)
	}
	_, err = art.CaptureYield(t.Context(), func(context.Context) error { return nil })
	wantErr(t, err, art.ErrNothingRecorded)
}

func TestYield_Invalid(t *testing.T) {
	wantErr(t, art.Yield(t.Context(), rewarded(1)), art.ErrInvalid, "does not come from CaptureYield")
	var late context.Context
	_, err := art.CaptureYield(t.Context(), func(ctx context.Context) error {
		late = ctx
		wantErr(t, art.Yield(ctx, nil), art.ErrInvalid, "nil")
		inner, err := art.CaptureYield(ctx, func(ctx context.Context) error { return art.Yield(ctx, rewarded(1)) })
		if err != nil || inner.Reward != 1 {
			t.Errorf("nested: %v, %v", inner, err)
		}
		if err := art.Yield(ctx, rewarded(2)); err != nil {
			t.Error(err)
		}
		wantErr(t, art.Yield(ctx, rewarded(3)), art.ErrInvalid, "already")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, art.Yield(late, rewarded(4)), art.ErrInvalid, "has returned")
}

// Parts of the same name sum up, and stopping twice counts once.
func TestTrajectory_TrackDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trajectory := &art.Trajectory{}
		for range 2 {
			stop := trajectory.TrackDuration("search")
			time.Sleep(2 * time.Second)
			stop()
			stop()
		}
		wantEqual(t, "metrics", trajectory.Metrics, map[string]float64{"search_duration": 4})
	})
}
