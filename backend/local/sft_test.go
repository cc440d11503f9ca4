package local

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// conversationOf is a user and an assistant in turns.
func conversationOf(texts ...string) []*art.Trajectory {
	t := art.NewTrajectory()
	for i, text := range texts {
		if i%2 == 0 {
			t.Add(art.User(text))
		} else {
			t.Add(art.Assistant(text))
		}
	}
	return []*art.Trajectory{t}
}

// TestSFT_Turns: the last reply has the targets that the whole conversation has beyond its beginning, and the step
// replays.
func TestSFT_Turns(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", &art.ModelOptions{Seed: 4})
	require.NoError(t, m.Register(t.Context(), b))
	count := func(turns art.Turns, texts ...string) float64 {
		result, err := m.TrainSFT(t.Context(), conversationOf(texts...), &art.SFTConfig{LearningRate: 1e-3, Turns: turns})
		require.NoError(t, err)
		return result.Metrics["data/tokens_trained"]
	}
	begin := count(art.TurnsAll, "7+5=", "12")
	all := count("", "7+5=", "12", "and 3?", "15 then")
	last := count(art.TurnsLast, "7+5=", "12", "and 3?", "15 then")
	require.Positive(t, begin)
	require.InDelta(t, all-begin, last, 0)
	require.NotEqual(t, begin, last, "the last reply, not the first")

	run, err := b.Dir(m)
	require.NoError(t, err)
	got, err := b.Replay(t.Context(), run, 2)
	require.NoError(t, err)
	require.True(t, got.Equal)
	_, err = m.TrainSFT(t.Context(), conversationOf("a", "b"), &art.SFTConfig{Turns: "first"})
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, `unknown turns "first"`)
}

// TestSFT_Validation: the loss of validation is that of the policy after the step, with which the next step on the same
// conversations begins, and it changes nothing in the step.
func TestSFT_Validation(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", &art.ModelOptions{Seed: 4})
	plain := art.NewModel("plain", &art.ModelOptions{Seed: 4})
	require.NoError(t, m.Register(t.Context(), b))
	require.NoError(t, plain.Register(t.Context(), b))
	data, held := conversationOf("7+5=", "12"), conversationOf("Write a number.", "no no", "again", "yes")
	cfg := &art.SFTConfig{LearningRate: 1e-3, Validation: held}
	result, err := m.TrainSFT(t.Context(), data, cfg)
	require.NoError(t, err)
	_, err = plain.TrainSFT(t.Context(), data, &art.SFTConfig{LearningRate: 1e-3})
	require.NoError(t, err)
	require.Equal(t, adapterBytes(t, b, plain, 1), adapterBytes(t, b, m, 1))
	next, err := m.TrainSFT(t.Context(), held, cfg)
	require.NoError(t, err)
	require.InEpsilon(t, next.Metrics["loss/sft"], result.Metrics["loss/validation"], 1e-5)
	require.Less(t, next.Metrics["loss/validation"], result.Metrics["loss/validation"], "it was trained on")

	cfg.Validation = []*art.Trajectory{art.NewTrajectory(art.User("a"))}
	_, err = m.TrainSFT(t.Context(), data, cfg)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "no loss of 1 trajectory of Validation")
	cfg.Validation = []*art.Trajectory{nil}
	_, err = m.TrainSFT(t.Context(), data, cfg)
	require.ErrorContains(t, err, "a trajectory of Validation is nil")
	require.Equal(t, 2, m.Step())
}

// TestSFT_ValidationLeavesOut: what does not fit into the context is left out with a warning, and changes no number.
func TestSFT_ValidationLeavesOut(t *testing.T) {
	var log bytes.Buffer
	b, err := Open(t.Context(), &Options{
		Dir: t.TempDir(), Context: 64, Progress: io.Discard, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	defer b.Close()
	data, held := conversationOf("7+5=", "12"), conversationOf("again", "yes")
	var losses []float64
	for name, validation := range map[string][]*art.Trajectory{
		"all": held, "some": append(conversationOf("long", strings.Repeat("yes ", 100)), held...),
	} {
		m := art.NewModel(name, nil)
		require.NoError(t, m.Register(t.Context(), b))
		log.Reset()
		result, err := m.TrainSFT(t.Context(), data, &art.SFTConfig{LearningRate: 1e-3, Validation: validation})
		require.NoError(t, err)
		losses = append(losses, result.Metrics["loss/validation"])
		require.Equal(t, name == "some", strings.Contains(log.String(), "histories=1 first=\"trajectory 0: "), log.String())
		log.Reset()
		_, err = m.TrainSFT(t.Context(), data, &art.SFTConfig{LearningRate: 1e-3, Validation: validation})
		require.NoError(t, err)
		require.NotContains(t, log.String(), "histories", "a warning for each step")
	}
	require.Equal(t, losses[0], losses[1])
}

// TestTrain_DefaultRate: a configuration without a rate has that of the size of the base, a tenth of it for all
// weights, and with one it has that.
func TestTrain_DefaultRate(t *testing.T) {
	b := open(t, t.TempDir())
	for name, opts := range map[string]art.ModelOptions{"adapter": {}, "full": {Full: true}} {
		m := art.NewModel(name, &opts)
		require.NoError(t, m.Register(t.Context(), b))
		want := 1e-3 * 128 / 128
		if opts.Full {
			want /= 10
		}
		data := conversationOf("7+5=", "12")
		result, err := m.TrainSFT(t.Context(), data, nil)
		require.NoError(t, err)
		require.InEpsilon(t, want, result.Metrics["loss/learning_rate"], 1e-12)
		pair := art.Preference{Chosen: data[0], Rejected: conversationOf("7+5=", "no")[0]}
		result, err = m.TrainDPO(t.Context(), []art.Preference{pair}, nil)
		require.NoError(t, err)
		require.InEpsilon(t, want, result.Metrics["loss/learning_rate"], 1e-12)
		result, err = m.Train(t.Context(), play(t, m), nil)
		require.NoError(t, err)
		require.InEpsilon(t, want, result.Metrics["loss/learning_rate"], 1e-12)
		result, err = m.Train(t.Context(), play(t, m), &art.TrainConfig{LearningRate: 3e-5})
		require.NoError(t, err)
		require.InEpsilon(t, 3e-5, result.Metrics["loss/learning_rate"], 1e-12)
	}
}
