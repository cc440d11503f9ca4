package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// clock moves on by a second whenever it is looked at.
func clock() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time { now = now.Add(time.Second); return now }
}

// run gathers and trains once, with one failed rollout.
func run(t *testing.T, events *art.Events) {
	t.Helper()
	m := art.NewModel("player", &art.ModelOptions{Events: events})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{Reply: arttest.Script("four")}))
	groups, err := art.GatherGroups(t.Context(), []int{0, 1}, func(ctx context.Context, n int) (*art.Trajectory, error) {
		if n == 1 {
			return nil, errors.New("boom")
		}
		trajectory := art.NewTrajectory(art.User("2+2"))
		_, err := m.Chat(ctx, trajectory, nil)
		trajectory.Reward = 0.25
		return trajectory, err
	}, &art.GatherOptions{GroupSize: 2, Concurrency: 1, MaxFailures: 2, Events: events})
	require.NoError(t, err)
	_, err = m.Train(t.Context(), groups, nil)
	require.NoError(t, err)
}

// Without a terminal there is one line for each thing that is over, without colours.
func TestNew_Plain(t *testing.T) {
	var out bytes.Buffer
	run(t, terminal.New(&terminal.Options{Output: &out}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2, out.String())
	require.Regexp(t, `^gather 4/4  2 failed  reward 0.25  \d+ tok/s  in \d+ms$`, lines[0])
	require.Regexp(t, `^train player step 1  2 skipped  in \d+ms$`, lines[1])
	require.NotContains(t, out.String(), "\x1b")
}

// On a terminal the line is redrawn, with the time that is left, and erased before what is over is told.
func TestNew_Live(t *testing.T) {
	var out bytes.Buffer
	run(t, terminal.New(&terminal.Options{Output: &out, Live: new(true), Color: new(true), Now: clock()}))
	text := out.String()
	require.Contains(t, text, "\x1b[1mgather 1/4\x1b[0m  reward 0.25")
	require.Regexp(t, `gather 2/4\S+  reward 0.25  \d+ tok/s  \d+s left`, text)
	require.Contains(t, text, "\r\x1b[K\x1b[1mgather 4/4")
	last := text[strings.LastIndex(text, "\x1b[K"):]
	require.True(t, strings.HasSuffix(last, "\n"), "the last line is left as it is: %q", last)
}

// Gathers at the same time, of the same size, each have their own numbers.
func TestNew_Overlapping(t *testing.T) {
	var out bytes.Buffer
	events := terminal.New(&terminal.Options{Output: &out, Live: new(true), Color: new(false), Now: clock()})
	for gather := range uint64(2) {
		events.GatherStart(art.GatherStart{Scenarios: 1, GroupSize: 4, Gather: gather})
	}
	ended := func(gather uint64, done int) art.RolloutEnd {
		progress := art.GatherProgress{Done: done, Total: 4}
		return art.RolloutEnd{RolloutStart: art.RolloutStart{Gather: gather}, Progress: progress}
	}
	events.RolloutEnd(ended(1, 3))
	events.RolloutEnd(ended(0, 1))
	events.GatherEnd(art.GatherEnd{Gather: 0, Progress: art.GatherProgress{Done: 4, Total: 4}})
	text := out.String()
	require.Contains(t, text[strings.LastIndex(text, "\n"):], "gather 3/4", "the other one goes on")
}

// A failed training, and a gather that ends early, say so.
func TestNew_Failures(t *testing.T) {
	var out bytes.Buffer
	events := terminal.New(&terminal.Options{Output: &out})
	learn := func(context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig) error {
		return errors.New("no")
	}
	m := art.NewModel("m", &art.ModelOptions{Events: events})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{Learn: learn}))
	_, err := m.Train(t.Context(), []*art.TrajectoryGroup{{}}, nil)
	require.Error(t, err)
	_, err = art.GatherGroups(t.Context(), []int{0},
		func(context.Context, int) (*art.Trajectory, error) { return nil, errors.New("x") },
		&art.GatherOptions{Events: events})
	require.Error(t, err)
	require.Contains(t, out.String(), "train m step 1  failed")
	require.Contains(t, out.String(), "ended early")
}

// A file is no terminal.
func TestNew_File(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	run(t, terminal.New(&terminal.Options{Output: f}))
	content, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.NotContains(t, string(content), "\r")
}

// A quiet line leaves nothing behind.
func TestNew_Quiet(t *testing.T) {
	var out bytes.Buffer
	run(t, terminal.New(&terminal.Options{Output: &out, Quiet: true}))
	require.Empty(t, out.String())
	run(t, terminal.New(&terminal.Options{Output: &out, Quiet: true, Live: new(true), Now: clock()}))
	require.NotContains(t, out.String(), "\n")
	require.True(t, strings.HasSuffix(out.String(), "\r\x1b[K"), "the last line is erased: %q", out.String())
}
