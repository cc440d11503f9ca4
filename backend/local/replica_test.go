package local

import (
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	_ "github.com/gomlx/compute/gobackend" // registers "go"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/gguftest"
	"github.com/goart-dev/art/internal/dev/race"
)

// TestReplicas: rollouts and training on three devices make the adapter of one, to the bit, and the metrics of the
// engine are those of all.
func TestReplicas(t *testing.T) {
	for _, base := range []string{"tiny", gguftest.Quantized(t, "../../model/tiny")} {
		t.Run(filepath.Base(base), func(t *testing.T) { testReplicas(t, base) })
	}
}

func testReplicas(t *testing.T, base string) {
	step := func(replicas ...string) (digest string, blocks int) {
		b, err := Open(t.Context(), &Options{
			Dir: t.TempDir(), Replicas: replicas, Slots: 4, Context: 256, Progress: io.Discard,
			Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, err)
		defer func() { require.NoError(t, b.Close()) }()
		m := art.NewModel("m", &art.ModelOptions{Base: base})
		require.NoError(t, m.Register(t.Context(), b))
		for range 2 {
			groups, err := art.GatherGroups(t.Context(), []string{"7+5=", "1+1="}, twoTurns(m), &art.GatherOptions{GroupSize: 6})
			require.NoError(t, err)
			for _, g := range groups {
				for i, tr := range g.Trajectories {
					tr.Reward = float64(i % 3)
				}
			}
			_, err = m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-3})
			require.NoError(t, err)
		}
		e, err := b.entry("test", m)
		require.NoError(t, err)
		return e.policy.digest(), b.engines()[0].Blocks
	}
	want, blocks := step()
	got, all := step("cpu", "cpu")
	require.Equal(t, want, got)
	require.Equal(t, 3*blocks, all)
}

// TestOpen_Replicas: a replica is a device of the same kind.
func TestOpen_Replicas(t *testing.T) {
	if race.Enabled {
		t.Skip("GoMLX's own device does not run under the race detector")
	}
	_, err := Open(t.Context(), &Options{Dir: t.TempDir(), Replicas: []string{"go:parallelism=-1"}})
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, `is a replica of a device of another kind, "cpu"`)
	_, err = Open(t.Context(), &Options{Dir: t.TempDir(), Replicas: []string{"tpu"}})
	require.ErrorIs(t, err, art.ErrDevice)
}
