package track_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/track"
)

// sink is where the items of an exporter go: the scenarios of rollouts, -1 for a completion outside of one.
type sink struct {
	mu    sync.Mutex
	sizes []int // of the batches
	items []int
	seen  int // completions
	fail  error
	block chan struct{}
}

// options are those of an exporter to the sink.
func (s *sink) options() track.ExporterOptions[int] {
	return track.ExporterOptions[int]{
		Name: "sink", Items: "numbers", Waiting: 1000,
		Completion: func(art.CompletionEvent) { s.seen++ },
		Rollout:    func(r *track.Rollout) ([]int, int, error) { return []int{r.Start.Scenario}, 0, nil },
		Lone:       func(art.CompletionEvent) ([]int, int, error) { return []int{-1}, 0, nil },
		Send: func(ctx context.Context, items []int) (int, error) {
			if s.block != nil {
				select {
				case <-ctx.Done():
					return len(items), ctx.Err()
				case <-s.block:
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.fail != nil {
				return len(items), s.fail
			}
			s.sizes, s.items = append(s.sizes, len(items)), append(s.items, items...)
			return 0, nil
		},
	}
}

// gatherOnes makes a rollout with one completion of each scenario.
func gatherOnes(t *testing.T, events *art.Events, scenarios int) {
	t.Helper()
	m := art.NewModel("player", &art.ModelOptions{Events: events})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{}))
	play := func(ctx context.Context, _ int) (*art.Trajectory, error) {
		x := art.NewTrajectory(art.User("?"))
		_, err := m.Chat(ctx, x, nil)
		return x, err
	}
	_, err := art.GatherGroups(t.Context(), make([]int, scenarios), play,
		&art.GatherOptions{GroupSize: 1, Events: events})
	require.NoError(t, err)
}

// Everything is sent once, in batches of the largest size or after BatchDelay, also what waits at Close.
func TestExporter_Batches(t *testing.T) {
	s := &sink{}
	o := s.options()
	o.Batch, o.BatchDelay = 20, 50*time.Millisecond
	finished := false
	o.Finish = func(context.Context) error {
		finished = true
		return nil
	}
	x := track.NewExporter(o)
	gatherOnes(t, x.Events(), 50)
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.items) == 50
	}, 10*time.Second, time.Millisecond)
	gatherOnes(t, x.Events(), 5) // less than a batch
	require.NoError(t, x.Close())
	require.True(t, finished)
	require.LessOrEqual(t, slices.Max(s.sizes), 20)
	require.GreaterOrEqual(t, slices.Max(s.sizes), 2)
	require.Equal(t, 55, s.seen)
	slices.Sort(s.items)
	want := []int{0, 0, 1, 1, 2, 2, 3, 3, 4, 4}
	for i := 5; i < 50; i++ {
		want = append(want, i)
	}
	require.Equal(t, want, s.items)
	require.Zero(t, x.Dropped())
}

// What was not taken is counted, and Close says why.
func TestExporter_Fails(t *testing.T) {
	s := &sink{fail: errors.New("no room")}
	x := track.NewExporter(s.options())
	gatherOnes(t, x.Events(), 7)
	err := x.Close()
	require.ErrorContains(t, err, "sink: no room")
	require.ErrorContains(t, err, "7 events or numbers were lost")
	require.Equal(t, err, x.Close())
	require.Equal(t, 7, x.Dropped())
}

// Where sending hangs, rollouts go on, what waits is bounded, and Close ends in time. All that was not sent is counted.
func TestExporter_Hangs(t *testing.T) {
	s := &sink{block: make(chan struct{})}
	o := s.options()
	o.Waiting, o.Senders, o.Timeout = 10, 3, 100*time.Millisecond
	x := track.NewExporter(o)
	start := time.Now()
	gatherOnes(t, x.Events(), 60)
	require.ErrorContains(t, x.Close(), "60 events or numbers were lost")
	require.Less(t, time.Since(start), 20*time.Second)
	require.Empty(t, s.items)
}
