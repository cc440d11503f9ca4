package local

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
)

// oneToken asks for one word. Its reward is 1 for half of the vocabulary.
func oneToken(m *art.Model) func(context.Context, string) (*art.Trajectory, error) {
	return func(ctx context.Context, question string) (*art.Trajectory, error) {
		trajectory := art.NewTrajectory(art.User(question))
		if question == "equal" {
			return trajectory, nil
		}
		reply, err := m.Chat(ctx, trajectory, &art.ChatOptions{MaxTokens: new(1)})
		if err == nil {
			trajectory.Reward = float64(len(reply.Content) % 2) // yes, not no
		}
		return trajectory, err
	}
}

// TestPipeline: a pipeline that is interrupted continues, all of its metrics are described, every one that is described
// is stored, and each step is made again to the same bits, those of off-policy groups too.
func TestPipeline(t *testing.T) {
	dir := t.TempDir()
	questions := slices.Repeat([]string{"yes or no", "2+2=", "equal", "hello", "no or yes", "1+1="}, 4)
	opts := &art.PipelineOptions{
		Steps: 6, Groups: 2, MaxStaleness: new(3), EvalEvery: 3, Train: &art.TrainConfig{LearningRate: 1e-4},
		Gather: &art.GatherOptions{GroupSize: 4, Extra: 1, Concurrency: 8},
	}
	run := func(stopAt int) (b *Backend, m *art.Model) {
		b = open(t, dir)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m = art.NewModel("m", &art.ModelOptions{Events: &art.Events{Commit: func(e art.Commit) {
			if e.Result.Step == stopAt {
				cancel()
			}
		}}})
		require.NoError(t, m.Register(t.Context(), b))
		opts.Evaluate = func(ctx context.Context) (*art.TrajectoryGroup, error) {
			return art.Gather(ctx, questions[:3], oneToken(m), nil)
		}
		_, err := art.Pipeline(ctx, m, questions, oneToken(m), opts)
		if stopAt > 0 {
			require.ErrorIs(t, err, context.Canceled)
		} else {
			require.NoError(t, err)
		}
		return b, m
	}
	b, m := run(2)
	require.Equal(t, 2, m.Step())
	require.NoError(t, b.Close())
	b, m = run(0)
	require.Equal(t, 6, m.Step())

	path, err := b.Dir(m)
	require.NoError(t, err)
	for step := range 6 {
		got, err := b.Replay(t.Context(), path, step)
		require.NoError(t, err)
		require.True(t, got.Equal, "step %d", step)
	}
	rows, err := b.History(t.Context(), m)
	require.NoError(t, err)
	var seen []string
	old := 0.0
	for _, row := range rows {
		old = max(old, row.Metrics["pipeline/staleness_max"])
		for key := range row.Metrics {
			if row.Split == "val" || row.Split == "discarded" {
				key = strings.Replace(key, row.Split+"/", "train/", 1)
			}
			name, ok := described(key)
			require.True(t, ok, "%s is not described", key)
			seen = append(seen, name)
		}
	}
	for _, info := range rundir.PipelineMetrics() {
		require.Contains(t, seen, info.Name)
	}
	require.Positive(t, old, "every group was on policy: nothing ran during a training")
	_, evaluated := art.Logged(rows, "val/reward", 3)
	require.True(t, evaluated)
}

// TestPin: a pinned context is answered by one step, in chats and over HTTP, also when the next ones are made.
func TestPin(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	pin, err := m.Pin()
	require.NoError(t, err)
	pinned := pin.Context(t.Context())
	greedy := &art.ChatOptions{Temperature: new(0.0), MaxTokens: new(4)}
	ask := func(ctx context.Context) *art.Sample {
		reply, err := m.Complete(ctx, &art.History{Messages: []art.Message{art.User("yes or no")}}, greedy)
		require.NoError(t, err)
		return reply.Message.Sample
	}
	before := ask(pinned)
	groups, err := art.GatherGroups(t.Context(), []string{"yes or no"}, oneToken(m), &art.GatherOptions{GroupSize: 8})
	require.NoError(t, err)
	_, err = m.Train(t.Context(), groups, &art.TrainConfig{LearningRate: 1e-2, MaxGradNorm: 1})
	require.NoError(t, err)
	after := ask(pinned)
	after.Settings.Seed = before.Settings.Seed
	require.Equal(t, before, after)
	require.Equal(t, 1, ask(t.Context()).Step)
	require.NotEqual(t, before.Logprobs, ask(t.Context()).Logprobs)

	recorded, err := art.Record(pinned, func(ctx context.Context) error {
		body := `{"messages": [{"role": "user", "content": "yes or no"}], "max_tokens": 2}`
		request, err := http.NewRequestWithContext(ctx, "POST", "http://art/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			return err
		}
		response, err := m.HTTPClient().Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	require.NoError(t, err)
	require.Equal(t, 0, recorded.Samples()[0].Step)
	_, err = art.NewModel("other", nil).Pin()
	require.ErrorIs(t, err, art.ErrNotRegistered)
}
