package trainer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// replicaOf returns a replica of a subject whose calls of the device are counted, and fail if told to.
func replicaOf(t testing.TB, s *subject) (r Replica, calls *atomic.Int64, fail *atomic.Bool) {
	t.Helper()
	calls, fail = &atomic.Int64{}, &atomic.Bool{}
	device := graphtest.Hooked(t, graphtest.Hooks{Run: func() error {
		calls.Add(1)
		if fail.Load() {
			return errors.New("broken replica")
		}
		return nil
	}})
	params, err := s.weights.Params(device)
	require.NoError(t, err)
	return Replica{device, params, graphx.NewPrograms(device, 1<<28)}, calls, fail
}

// TestTrain_Replicas: a step of a training on several devices is that on one, to the bit, of an adapter, one with DoRA,
// and all weights. Each device computes; one that fails ends the training with its error.
func TestTrain_Replicas(t *testing.T) {
	_, w, a := readDoRA(t)
	params, err := w.Params(graphtest.Device(t))
	require.NoError(t, err)
	dora := subject{name: "dora", weights: w, target: AdapterTarget(w.Config, params, a), state: AdapterState(a)}
	for _, s := range append(both(t), dora) {
		batch := randomBatch(rand.New(rand.NewPCG(seed, 97)), 24, min(64, s.weights.Config.VocabSize), 40)
		run := plainRun()
		run.Loss, run.MiniBatches, run.Epochs, run.MicroBatch = grpo.PolicyLoss{}, 2, 2, 1
		want, wantReport, err := s.trainer(t, Options{Workers: 1}).Train(t.Context(), s.state, batch, run)
		require.NoError(t, err)
		first, calls, fail := replicaOf(t, &s)
		second, others, _ := replicaOf(t, &s)
		tr := s.trainer(t, Options{
			Workers: 1, Replicas: []Replica{first, second},
			Pause: func(context.Context, time.Duration) { time.Sleep(time.Millisecond) }, // the others go on
		})
		got, report, err := tr.Train(t.Context(), s.state, batch, run)
		require.NoError(t, err)
		sameState(t, want, got)
		sameDifference(t, wantReport.Gap, report.Gap, "gap")
		require.Positive(t, calls.Load(), s.name)
		require.Positive(t, others.Load(), s.name)
		fail.Store(true)
		_, _, err = tr.Train(t.Context(), s.state, batch, run)
		require.ErrorContains(t, err, "broken replica")
	}
}
