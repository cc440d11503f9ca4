//go:build cgo

package xla_test

import (
	"context"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
)

// openRun registers a model of a run directory on a device, with bfloat16 matrices.
func openRun(t *testing.T, dir, device string) (m *art.Model, end func()) {
	b, err := local.Open(t.Context(), &local.Options{
		Dir: dir, Device: device, Weights: "bfloat16", Slots: 8, Context: 128, Progress: io.Discard,
	})
	require.NoError(t, err)
	m = art.NewModel("m", &art.ModelOptions{Seed: seed, Chat: art.ChatOptions{MaxTokens: new(12), Temperature: new(2.0)}})
	require.NoError(t, m.Register(t.Context(), b))
	return m, func() { require.NoError(t, b.Close()) }
}

// play rewards short answers. At the temperature of openRun, answers differ.
func play(m *art.Model) func(ctx context.Context, question string) (*art.Trajectory, error) {
	return func(ctx context.Context, question string) (*art.Trajectory, error) {
		t := art.NewTrajectory(art.User(question))
		reply, err := m.Chat(ctx, t, nil)
		if err != nil {
			return nil, err
		}
		t.Reward = -float64(len(reply.Content))
		return t, nil
	}
}

// greedy is the greedy reply of a model.
func greedy(t *testing.T, m *art.Model) *art.Sample {
	reply, err := m.Chat(t.Context(), art.NewTrajectory(art.User("What is 31-12?")),
		&art.ChatOptions{Temperature: new(0.0)})
	require.NoError(t, err)
	require.NotEmpty(t, reply.Sample.IDs)
	return reply.Sample
}

// TestLocal_BFloat16: a run with bfloat16 matrices samples, trains, is stored and resumed, through the local backend.
// On the CPU device sampler and trainer agree bit for bit, on XLA as closely as in TestBFloat16.
func TestLocal_BFloat16(t *testing.T) {
	for name, bound := range map[string]float64{"cpu": 0, "xla:" + configs[0]: 0.1, "xla:" + configs[1]: 0.1} {
		t.Run(name, func(t *testing.T) {
			if config, ok := strings.CutPrefix(name, "xla:"); ok {
				device(t, config) // or skip
				if testing.Short() {
					t.Skip("half a minute of compilation")
				}
			}
			dir := t.TempDir()
			m, end := openRun(t, dir, name)
			step := func() {
				groups, err := art.GatherGroups(t.Context(), []string{"7+5=", "What is 31-12?"}, play(m),
					&art.GatherOptions{GroupSize: 6})
				require.NoError(t, err)
				result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-3})
				require.NoError(t, err)
				metrics := result.Metrics
				for metric, value := range metrics {
					require.False(t, math.IsNaN(value) || math.IsInf(value, 0), "step %d: %s is %v", result.Step, metric, value)
				}
				require.Contains(t, metrics, "loss/policy")
				require.Positive(t, metrics["loss/grad_norm"])
				require.Greater(t, metrics["data/tokens_trained"], 20.0)
				gap := metrics["train/logprob_gap_max"]
				t.Logf("step %d: loss %.3g of %v tokens, gap at most %.2g nats", result.Step, metrics["loss/policy"],
					metrics["data/tokens_trained"], gap)
				require.LessOrEqual(t, gap, bound)
			}
			before := greedy(t, m)
			for range 3 {
				step()
			}
			want := greedy(t, m)
			require.NotEqual(t, before.Logprobs, want.Logprobs, "training changes the model")
			end()

			m, end = openRun(t, dir, name)
			defer end()
			require.Equal(t, 3, m.Step())
			got := greedy(t, m)
			require.Equal(t, want.IDs, got.IDs)
			require.Equal(t, want.Logprobs, got.Logprobs, "the adapter that was stored")
			step()
			require.Equal(t, 4, m.Step())
		})
	}
}
