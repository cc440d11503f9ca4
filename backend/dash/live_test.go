package dash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// state is a message of the stream.
type state struct {
	Runs    map[string]string
	Tasks   []struct{ Text string }
	Waiting int
}

// listen reads the stream of events.
func listen(t *testing.T, url string) <-chan state {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/events", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	states := make(chan state, 1000)
	go func() {
		defer close(states)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var s state
				if json.Unmarshal([]byte(data), &s) == nil {
					states <- s
				}
			}
		}
	}()
	return states
}

// await reads the stream until a state is what is waited for.
func await(t *testing.T, states <-chan state, what string, is func(state) bool) state {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case s, ok := <-states:
			require.True(t, ok, "the stream ended before: %s", what)
			if is(s) {
				return s
			}
		case <-late:
			t.Fatalf("did not come: %s", what)
		}
	}
}

// TestEvents_Folder: what another process stores is told.
func TestEvents_Folder(t *testing.T) {
	root := t.TempDir()
	store(t, root, "games", "player-1", 1, stepGroups)
	s := serve(t, &dash.Options{Dir: root, Interval: 10 * time.Millisecond})
	states := listen(t, s.URL)
	first := await(t, states, "the run", func(s state) bool { return s.Runs["games/player-1"] != "" })
	store(t, root, "games", "player-2", 1, stepGroups)
	next := await(t, states, "another run", func(s state) bool { return s.Runs["games/player-2"] != "" })
	require.NotContains(t, next.Runs, "games/player-1", "it has not changed since %v", first)
}

// TestEvents_Process: rollouts, trainings and waiting groups of this process are told.
func TestEvents_Process(t *testing.T) {
	judge := dash.NewJudge()
	h, err := dash.New(&dash.Options{Dir: t.TempDir(), Judge: judge})
	require.NoError(t, err)
	s := startHandler(t, h)
	states := listen(t, s.URL)
	backend := &arttest.Backend{}
	model := art.NewModel("player", &art.ModelOptions{Events: h.Events()})
	require.NoError(t, model.Register(t.Context(), backend))
	release := make(chan struct{})
	done := make(chan []*art.TrajectoryGroup, 1)
	go func() {
		groups, err := art.GatherGroups(t.Context(), []int{0}, func(ctx context.Context, _ int) (*art.Trajectory, error) {
			trajectory := art.NewTrajectory(art.User("hello"))
			_, err := model.Chat(ctx, trajectory, nil)
			<-release
			return trajectory, err
		}, &art.GatherOptions{GroupSize: 2, After: judge.Score, Events: h.Events()})
		if err != nil {
			t.Error(err)
		}
		done <- groups
	}()
	await(t, states, "a gather", func(s state) bool { return len(s.Tasks) == 1 && s.Tasks[0].Text == "rollouts" })
	close(release)
	await(t, states, "a waiting group", func(s state) bool { return s.Waiting == 1 })
	form := map[string][]string{"id": {waitingID(t, s)}, "mode": {"score"}, "v0": {"0"}, "v1": {"1"}}
	response, err := s.Client().PostForm(s.URL+"/judge", form)
	require.NoError(t, err)
	response.Body.Close()
	groups := <-done
	await(t, states, "the end", func(s state) bool { return len(s.Tasks) == 0 && s.Waiting == 0 })
	_, err = model.Train(t.Context(), groups, nil)
	require.NoError(t, err)
}

// TestClose_EndsStreams: a server with a stream can end.
func TestClose_EndsStreams(t *testing.T) {
	h, err := dash.New(&dash.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	s := startHandler(t, h)
	states := listen(t, s.URL)
	await(t, states, "a first state", func(state) bool { return true })
	require.NoError(t, h.Close())
	for range states {
	}
}
