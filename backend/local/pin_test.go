package local

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestPinStep: any stored step answers as it did when it was the newest, bit for bit, also when it is loaded again.
func TestPinStep(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	opts := &art.ChatOptions{Seed: new(uint64(4)), MaxTokens: new(12)}
	var then []*art.Sample
	const steps = keptSteps + 2
	for step := range steps {
		if step > 0 {
			_, err := m.TrainSFT(t.Context(), []*art.Trajectory{art.NewTrajectory(art.User("Say it."), art.Assistant("It."))},
				&art.SFTConfig{LearningRate: 2e-2})
			require.NoError(t, err)
		}
		r, err := m.Complete(t.Context(), ask("Tell me a story."), opts)
		require.NoError(t, err)
		require.Equal(t, step, r.Message.Sample.Step)
		then = append(then, r.Message.Sample)
	}
	require.NotEqual(t, then[0].Logprobs[:1], then[steps-1].Logprobs[:1], "training changes nothing")
	order := []int{2, 2, 0, 1, 2, 3, 4, 5, 0}
	for _, step := range order {
		pin, err := m.PinStep(t.Context(), step)
		require.NoError(t, err)
		r, err := m.Complete(pin.Context(t.Context()), ask("Tell me a story."), opts)
		require.NoError(t, err)
		require.Equal(t, then[step], r.Message.Sample)
		require.LessOrEqual(t, len(b.models[m].pinned.list), keptSteps)
	}
	_, err := m.PinStep(t.Context(), 99)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.NoError(t, b.DeleteCheckpoints(t.Context(), m, []int{5}))
	_, err = m.PinStep(t.Context(), 1) // it is not in memory any more
	require.ErrorIs(t, err, art.ErrInvalid)
}
