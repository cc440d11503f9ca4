//go:build cgo

package xla_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/local"
	"github.com/goart-dev/art/grpo/credit"
)

// kinds are what can be trained beside a plain adapter.
var kinds = map[string]art.ModelOptions{
	"dora": {LoRA: art.LoRA{Rank: 4, DoRA: true, Targets: []string{
		"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "embed_tokens", "lm_head",
	}}},
	"full": {Full: true},
}

// start registers a model of a run directory on a device, in float32.
func start(t *testing.T, dir, device string, opts art.ModelOptions) (m *art.Model, end func()) {
	b, err := local.Open(t.Context(), &local.Options{
		Dir: dir, Device: device, Slots: 8, Context: 128, Progress: io.Discard,
	})
	require.NoError(t, err)
	opts.Seed, opts.Chat = seed, art.ChatOptions{MaxTokens: new(12), Temperature: new(2.0)}
	m = art.NewModel("m", &opts)
	require.NoError(t, m.Register(t.Context(), b))
	return m, func() { require.NoError(t, b.Close()) }
}

// lesson trains on an answer.
func lesson(t *testing.T, m *art.Model, answer string) (loss float64) {
	shown := art.NewTrajectory(art.User("Write a number."), art.Assistant(answer))
	result, err := m.TrainSFT(t.Context(), []*art.Trajectory{shown}, &art.SFTConfig{LearningRate: 2e-4, Epochs: 3})
	require.NoError(t, err)
	return result.Metrics["loss/sft"]
}

// TestLocal_Trained: adapters with magnitudes and all weights are sampled, trained by rewards and by examples, stored
// and resumed on XLA as on the CPU device: the sampler has the trainer's logprobs, and the same lessons make the same
// model.
func TestLocal_Trained(t *testing.T) {
	for kind, opts := range kinds {
		t.Run(kind, func(t *testing.T) {
			device(t, configs[0]) // or skip
			var losses, logprobs [][]float64
			for _, name := range []string{"cpu", "xla:" + configs[0]} {
				dir := t.TempDir()
				m, end := start(t, dir, name, opts)
				before := greedy(t, m)
				var list []float64
				for _, answer := range []string{"no no no", "yes 5", "no no no"} {
					list = append(list, lesson(t, m, answer))
				}
				losses = append(losses, list)
				learned := greedy(t, m)
				require.NotEqual(t, before.Logprobs, learned.Logprobs, "training changes the model")
				logprobs = append(logprobs, score(t, m))
				rewarded(t, m, name)
				want := greedy(t, m)
				end()

				m, end = start(t, dir, name, opts)
				require.Equal(t, 4, m.Step())
				got := greedy(t, m)
				require.Equal(t, want.IDs, got.IDs)
				require.Equal(t, want.Logprobs, got.Logprobs, "what was stored")
				rewarded(t, m, name)
				end()
			}
			t.Logf("losses of the lessons: %.6f", losses)
			require.InDeltaSlice(t, losses[0], losses[1], 1e-3)
			require.InDeltaSlice(t, logprobs[0], logprobs[1], 1e-2)
			require.Less(t, losses[0][2], losses[0][0], "the same answer again")
		})
	}
}

// rewarded makes a step by rewards, and checks that the trainer has the sampler's logprobs.
func rewarded(t *testing.T, m *art.Model, device string) {
	groups, err := art.GatherGroups(t.Context(), []string{"7+5=", "What is 31-12?"}, play(m),
		&art.GatherOptions{GroupSize: 6})
	require.NoError(t, err)
	result, err := m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-4, KL: credit.KL{Coef: 0.1}})
	require.NoError(t, err)
	bound := 0.0
	if strings.HasPrefix(device, "xla") {
		bound = 1e-4
	}
	gap := result.Metrics["train/logprob_gap_max"]
	t.Logf("%s, step %d: gap at most %.2g nats", device, result.Step, gap)
	require.LessOrEqual(t, gap, bound)
	require.Positive(t, result.Metrics["loss/kl_ref"], "the reference is the base model")
	require.Positive(t, result.Metrics["train/logprob_change_max"])
}

// score returns the logprobs of a fixed text.
func score(t *testing.T, m *art.Model) (logprobs []float64) {
	reply, err := m.Force(t.Context(), art.NewTrajectory(art.User("What is 31-12?")), art.Assistant("19 and no 5"), nil)
	require.NoError(t, err)
	for _, x := range reply.Sample.Logprobs {
		logprobs = append(logprobs, float64(x))
	}
	require.NotEmpty(t, logprobs)
	return logprobs
}
