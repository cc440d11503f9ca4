package local

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestRest: a training rests as long as it should while requests are answered, and not without them.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(f func()) time.Duration { began := time.Now(); f(); return time.Since(began) }
		always := func() bool { return true }
		require.Equal(t, 7*time.Second, took(func() { rest(t.Context(), 7*time.Second, always) }))
		require.Zero(t, took(func() { rest(t.Context(), time.Hour, func() bool { return false }) }))
		end := time.Now().Add(2 * time.Second)
		until := func() bool { return time.Now().Before(end) }
		require.Equal(t, 2*time.Second, took(func() { rest(t.Context(), time.Hour, until) }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.Equal(t, time.Second, took(func() { rest(ctx, time.Hour, always) }))
	})
}

// TestOpen_TrainShare: a share is above 0 and up to 1, and with 1, the default, nothing pauses.
func TestOpen_TrainShare(t *testing.T) {
	for _, bad := range []float64{-0.1, 1.5} {
		_, err := Open(t.Context(), &Options{Dir: t.TempDir(), TrainShare: bad})
		require.ErrorIs(t, err, art.ErrInvalid)
	}
	for share, pauses := range map[float64]bool{0: false, 1: false, 0.25: true} {
		b, err := Open(t.Context(), &Options{Dir: t.TempDir(), TrainShare: share})
		require.NoError(t, err)
		require.Equal(t, pauses, b.pause() != nil)
		require.NoError(t, b.Close())
	}
}

// beside trains a model while clients call it one request after the other, and returns how many optimizer steps were
// made, how many requests were answered meanwhile, and the most steps that were made during one request.
func beside(t *testing.T, share float64) (updates, answered, most int, adapter []byte) {
	b, err := Open(t.Context(), &Options{Dir: t.TempDir(), TrainShare: share})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	group, err := art.GatherGroups(t.Context(), []string{"What is 7+5?"}, func(ctx context.Context, q string) (
		*art.Trajectory, error,
	) {
		tr := art.NewTrajectory(art.User(q))
		_, err := m.Chat(ctx, tr, &art.ChatOptions{MaxTokens: new(8), MinTokens: new(8)})
		tr.Reward = float64(tr.Samples()[0].IDs[0] % 7)
		return tr, err
	}, &art.GatherOptions{GroupSize: 8})
	require.NoError(t, err)

	var done atomic.Bool
	var steps atomic.Int64
	var mu sync.Mutex
	var clients sync.WaitGroup
	for range 3 {
		clients.Go(func() {
			for !done.Load() {
				before := steps.Load()
				r, err := m.Complete(t.Context(), ask("Tell me a story."), &art.ChatOptions{MaxTokens: new(8)})
				require.NoError(t, err)
				during := int(steps.Load() - before)
				mu.Lock()
				answered, most = answered+1, max(most, during)
				mu.Unlock()
				require.LessOrEqual(t, r.Message.Sample.Step, 1)
			}
		})
	}
	result, err := m.Train(t.Context(), group, &art.TrainConfig{
		Epochs: 30, MiniBatches: 4, LearningRate: 1e-4, Progress: func(p art.TrainProgress) { steps.Store(int64(p.Done)) },
	})
	done.Store(true)
	clients.Wait()
	require.NoError(t, err)
	require.Equal(t, 1, result.Step)
	dir, ok := b.models[m].run.Checkpoint(1)
	require.True(t, ok)
	adapter, err = os.ReadFile(filepath.Join(dir, "adapter_model.safetensors"))
	require.NoError(t, err)
	return int(steps.Load()), answered, most, adapter
}

// TestTrain_BesideRequests: while clients ask one request after the other, a training makes all of its steps, and each
// request is answered within a fraction of them, whatever the share. The adapter does not depend on it.
func TestTrain_BesideRequests(t *testing.T) {
	var first []byte
	for _, share := range []float64{1, 0.3} {
		updates, answered, most, adapter := beside(t, share)
		t.Logf("share %v: %d optimizer steps, %d requests, at most %d steps during one", share, updates, answered, most)
		require.Equal(t, 120, updates)
		require.GreaterOrEqual(t, answered, 6)
		require.Less(t, most, 75)
		if first == nil {
			first = adapter
		}
		require.Equal(t, first, adapter)
	}
}
