package local

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestPlayers: two models on one base, trained side by side on games that both of them play. Each answers with its own
// adapter while the other is trained, learns what its own rewards say, has its own run, and replays by itself.
func TestPlayers(t *testing.T) {
	b := open(t, t.TempDir())
	even, odd := art.NewModel("even", &art.ModelOptions{Seed: 1}), art.NewModel("odd", &art.ModelOptions{Seed: 2})
	for _, m := range []*art.Model{even, odd} {
		require.NoError(t, m.Register(t.Context(), b))
	}
	require.Len(t, b.bases, 1, "the base is loaded once")
	one := &art.ChatOptions{MaxTokens: new(1)}
	// play lets one say a word and the other answer it. One is to say words of even length, the other of
	// odd length.
	play := func(ctx context.Context, question string) ([]*art.Trajectory, error) {
		first := art.NewTrajectory(art.User(question))
		said, err := even.Chat(ctx, first, one)
		if err != nil {
			return nil, err
		}
		second := art.NewTrajectory(art.User(question + said.Content))
		answered, err := odd.Chat(ctx, second, one)
		if err != nil {
			return nil, err
		}
		first.Reward = float64(1 - len(said.Content)%2)
		second.Reward = float64(len(answered.Content) % 2)
		return []*art.Trajectory{first, second}, nil
	}
	gather := func(size int) [][]*art.TrajectoryGroup {
		games, err := art.GatherPlayers(t.Context(), []string{"yes or no", "no or yes"}, 2, play,
			&art.GatherOptions{GroupSize: size})
		require.NoError(t, err)
		return games
	}
	before := gather(100)
	cfg := &art.TrainConfig{LearningRate: 3e-3, MaxGradNorm: 1}
	for range 8 {
		games := gather(16)
		trained := make(chan error)
		go func() { _, err := even.Train(t.Context(), games[0], cfg); trained <- err }()
		_, err := odd.Train(t.Context(), games[1], cfg)
		require.NoError(t, err)
		require.NoError(t, <-trained)
	}
	after := gather(100)
	for player, m := range []*art.Model{even, odd} {
		was, is := art.Metrics(before[player]...)["reward"], art.Metrics(after[player]...)["reward"]
		t.Logf("%s: %.2f, then %.2f", m.Name(), was, is)
		require.Greater(t, is, was+0.15, m.Name())
		require.Equal(t, 8, m.Step())
		dir, err := b.Dir(m)
		require.NoError(t, err)
		again, err := b.Replay(t.Context(), dir, 7)
		require.NoError(t, err)
		require.True(t, again.Equal)
	}
}
