package runs

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

var large = flag.Bool("large", false, "index a file of 100,000 trajectories, and log how long it takes")

// reader returns a reader of a run that has the groups as (val, 0).
func readerOf(t *testing.T, groups []*art.TrajectoryGroup) *Reader {
	t.Helper()
	run, err := Open(t.TempDir(), "p", "m", nil)
	require.NoError(t, err)
	require.NoError(t, run.WriteModel(map[string]string{"name": "m"}))
	require.NoError(t, run.WriteTrajectories("val", 0, groups))
	require.NoError(t, run.Close())
	r, err := NewReader(run.Dir())
	require.NoError(t, err)
	return r
}

// TestIndex_EqualsTrajectories: the index, the texts and the single groups say what ReadTrajectories says.
func TestIndex_EqualsTrajectories(t *testing.T) {
	g := generator{seeded(t)}
	for range 20 {
		var groups []*art.TrajectoryGroup
		for range 1 + g.IntN(6) {
			groups = append(groups, g.group())
		}
		r := readerOf(t, groups)
		entries, err := r.Index("val", 0)
		require.NoError(t, err)
		var texts [][]art.Message
		require.NoError(t, r.Texts("val", 0, func(_, _ int, messages []art.Message) bool {
			texts = append(texts, messages)
			return true
		}))
		for i, want := range groups {
			got, err := r.ReadGroup("val", 0, i)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Equal(t, failuresOf(want.Failures), entries[0].Failures)
			if len(want.Trajectories) == 0 {
				require.Equal(t, -1, entries[0].Trajectory)
				entries = entries[1:]
			}
			for j, trajectory := range want.Trajectories {
				e := entries[0]
				require.Equal(t, []int{i, j}, []int{e.Group, e.Trajectory})
				require.Equal(t, trajectory.Reward, e.Reward)
				require.Equal(t, trajectory.Duration, e.Duration)
				if !trajectory.Start.IsZero() {
					require.Equal(t, trajectory.Start.UnixMicro(), e.Start.UnixMicro())
				}
				first, _, ok := trajectory.PolicySteps()
				require.Equal(t, ok, e.FirstStep >= 0)
				if ok {
					require.Equal(t, first, e.FirstStep)
				}
				require.Equal(t, textsOf(trajectory.Messages), texts[0])
				entries, texts = entries[1:], texts[1:]
			}
		}
		require.Empty(t, entries)
		_, err = r.ReadGroup("val", 0, len(groups))
		require.ErrorIs(t, err, art.ErrInvalid)
	}
}

// textsOf are the messages as [Reader.Texts] returns them.
func textsOf(messages []art.Message) (list []art.Message) {
	valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
	for _, m := range messages {
		text := art.Message{Role: art.Role(valid(string(m.Role))), Content: valid(m.Content),
			Reasoning: valid(m.Reasoning), Name: valid(m.Name)}
		for _, c := range m.ToolCalls {
			text.ToolCalls = append(text.ToolCalls,
				art.ToolCall{ID: valid(c.ID), Name: valid(c.Name), Arguments: valid(c.Arguments)})
		}
		list = append(list, text)
	}
	return list
}

// failuresOf are the failures as [Reader.Index] returns them.
func failuresOf(failures []art.Failure) (list []art.Failure) {
	valid := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
	for _, f := range failures {
		list = append(list, art.Failure{Scenario: f.Scenario, Attempt: f.Attempt, Tries: f.Tries, Type: valid(f.Type),
			Message: valid(f.Message), Stack: valid(f.Stack)})
	}
	return list
}

func TestIndex_Errors(t *testing.T) {
	r := readerOf(t, []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 1}}}})
	_, err := r.Index("val", 1)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = r.Index("../val", 0)
	require.ErrorIs(t, err, art.ErrInvalid)
	path := filepath.Join(r.Dir(), "trajectories", "val", "0000.parquet")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for cut := 0; cut < len(content); cut += 101 {
		require.NoError(t, os.WriteFile(path, content[:cut], 0o644))
		_, err := r.Index("val", 0)
		require.ErrorIs(t, err, art.ErrCorrupt, cut)
		err = r.Texts("val", 0, func(int, int, []art.Message) bool { return true })
		require.ErrorIs(t, err, art.ErrCorrupt, cut)
	}
}

// TestIndex_Large: go test ./internal/runs -run Index_Large -large -v
func TestIndex_Large(t *testing.T) {
	if !*large {
		t.Skip("without -large")
	}
	var groups []*art.TrajectoryGroup
	for i := range 12_500 {
		g := &art.TrajectoryGroup{}
		for j := range 8 {
			ids := make([]int32, 64)
			g.Trajectories = append(g.Trajectories, &art.Trajectory{
				Reward: float64(j), Start: time.Unix(int64(i), 0), Duration: time.Second,
				Metrics: map[string]float64{"turns": float64(j)},
				History: art.History{Messages: []art.Message{art.User(fmt.Sprint("question ", i)), {
					Role: art.RoleAssistant, Content: fmt.Sprint("answer ", i, j),
					Sample: &art.Sample{PromptIDs: ids, IDs: ids, Logprobs: make([]float32, 64)},
				}}},
			})
		}
		groups = append(groups, g)
	}
	r := readerOf(t, groups)
	measure := func(what string, f func() error) {
		began := time.Now()
		require.NoError(t, f())
		t.Logf("%-40s %v", what, time.Since(began).Round(time.Microsecond))
	}
	measure("index", func() error { _, err := r.Index("val", 0); return err })
	measure("group in the middle", func() error { _, err := r.ReadGroup("val", 0, 6000); return err })
	measure("last group", func() error { _, err := r.ReadGroup("val", 0, 12_499); return err })
	measure("texts", func() error {
		return r.Texts("val", 0, func(int, int, []art.Message) bool { return true })
	})
	measure("all", func() error { _, err := r.ReadTrajectories("val", 0); return err })
}
