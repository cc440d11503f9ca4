package openpipe

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

var update = flag.Bool("update", false, "write testdata/reported.json, with ART_OPENPIPE_PYTHON")

// reported is a report as a service receives it.
type reported struct {
	Path          string         `json:"path"`
	Authorization string         `json:"authorization"`
	Body          map[string]any `json:"body"`
}

// service takes reports.
type service struct {
	*httptest.Server
	status int // 0 is 200

	mu   sync.Mutex
	list []reported
}

func newService(t *testing.T) *service {
	s := &service{}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status != 0 {
		w.WriteHeader(s.status)
		return
	}
	one := reported{Path: r.URL.Path, Authorization: r.Header.Get("Authorization")}
	if err := json.NewDecoder(r.Body).Decode(&one.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.list = append(s.list, one)
	_, _ = w.Write([]byte(`{"status":"ok"}`))
}

func open(t *testing.T, url string) *Tracker {
	t.Helper()
	log, err := New(&Options{APIKey: "opk-1", BaseURL: url + "/api/v1", Metadata: map[string]string{"prompt_id": "sums"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	return log
}

// ask gathers a group of rollouts with a completion each, whose judge gives 0.5.
func ask(t *testing.T, log *Tracker, size int) {
	t.Helper()
	m := art.NewModel("player", &art.ModelOptions{Events: log.Events()})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{Reply: four}))
	play := func(ctx context.Context, _ int) (*art.Trajectory, error) {
		x := art.NewTrajectory(art.User("2+2"))
		_, err := m.Chat(ctx, x, &art.ChatOptions{MaxTokens: new(9), Seed: new(uint64(7))})
		return x, err
	}
	judge := func(_ context.Context, g *art.TrajectoryGroup) ([]*art.TrajectoryGroup, error) {
		for _, x := range g.Trajectories {
			x.Reward = 0.5
		}
		return []*art.TrajectoryGroup{g}, nil
	}
	_, err := art.GatherGroups(t.Context(), []int{0}, play,
		&art.GatherOptions{GroupSize: size, MaxFailures: size, Events: log.Events(), After: judge})
	require.NoError(t, err)
}

func four(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
	return art.Assistant("four"), nil
}

// The Python client reports the same completion with the same content, but for a note on itself. What it sent is
// recorded; internal/dev/conformance/trackers/report_openpipe.py says how to ask it again.
func TestTracker_Client(t *testing.T) {
	s := newService(t)
	log := open(t, s.URL)
	ask(t, log, 1)
	require.NoError(t, log.Close())
	require.Len(t, s.list, 1)
	ours := s.list[0]
	response := ours.Body["respPayload"].(map[string]any)
	response["id"], response["created"] = "c", 1.0
	times := [2]float64{ours.Body["requestedAt"].(float64), ours.Body["receivedAt"].(float64)}
	require.InDelta(t, time.Now().UnixMilli(), times[0], 60_000)
	require.LessOrEqual(t, times[0], times[1])

	const golden = "testdata/reported.json"
	want, err := os.ReadFile(golden)
	if python := os.Getenv("ART_OPENPIPE_PYTHON"); python != "" {
		body, encoding := json.Marshal(ours.Body)
		require.NoError(t, encoding)
		file := filepath.Join(t.TempDir(), "report.json")
		require.NoError(t, os.WriteFile(file, body, 0o666))
		cmd := exec.Command(python, "../../../internal/dev/conformance/trackers/report_openpipe.py", file)
		cmd.Stderr = os.Stderr
		want, err = cmd.Output()
		if *update && err == nil {
			require.NoError(t, os.WriteFile(golden, want, 0o666))
		}
	}
	require.NoError(t, err)
	var client reported
	require.NoError(t, json.Unmarshal(want, &client))
	require.Contains(t, client.Body, "tags")
	delete(client.Body, "tags")
	delete(ours.Body, "requestedAt")
	delete(ours.Body, "receivedAt")
	require.Equal(t, client, ours)
}

// A report has the reward that the judge gave, and what tells the rollouts of a group apart.
func TestTracker_Metadata(t *testing.T) {
	s := newService(t)
	log := open(t, s.URL)
	ask(t, log, 3)
	require.NoError(t, log.Close())
	require.Len(t, s.list, 3)
	attempts := map[any]bool{}
	for _, r := range s.list {
		metadata := r.Body["reqPayload"].(map[string]any)["metadata"].(map[string]any)
		require.Equal(t, "0.5", metadata["reward"])
		require.Equal(t, "sums", metadata["prompt_id"])
		attempts[metadata["attempt"]] = true
	}
	require.Len(t, attempts, 3)
}

// Metadata keeps to the limits of OpenAI's API: entries, and characters of a value.
func TestMetadata_Limits(t *testing.T) {
	more := map[string]string{"long": strings.Repeat("é", 600), strings.Repeat("k", 65): "left out"}
	for i := range 30 {
		more["key"+string(rune('a'+i))] = "v"
	}
	out := metadata(-1, nil, more)
	require.Len(t, out, maxEntries)
	for key, value := range out {
		require.LessOrEqual(t, len(key), maxKey)
		require.LessOrEqual(t, len([]rune(value)), maxText)
	}
}

// A completion outside of a gather is reported at once, and a failed one with its error.
func TestTracker_Lone(t *testing.T) {
	s := newService(t)
	log := open(t, s.URL)
	fail := func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		return art.Message{}, errors.New("no room")
	}
	m := art.NewModel("player", &art.ModelOptions{Events: log.Events()})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{Reply: fail}))
	_, err := m.Complete(t.Context(), &art.History{Messages: []art.Message{art.User("?")}}, nil)
	require.Error(t, err)
	require.NoError(t, log.Close())
	require.Len(t, s.list, 1)
	require.Equal(t, 500.0, s.list[0].Body["statusCode"])
	require.Contains(t, s.list[0].Body["errorMessage"], "no room")
	require.NotContains(t, s.list[0].Body, "respPayload")
}

// A service that hangs or answers 500 does not slow rollouts, and Close says what was lost.
func TestTracker_Failures(t *testing.T) {
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	broken := newService(t)
	broken.status = http.StatusInternalServerError
	for name, url := range map[string]string{"hangs": hanging.URL, "500": broken.URL} {
		log, err := New(&Options{APIKey: "k", BaseURL: url, Timeout: 200 * time.Millisecond})
		require.NoError(t, err)
		start := time.Now()
		ask(t, log, 20)
		require.Less(t, time.Since(start), 10*time.Second, name)
		err = log.Close()
		require.ErrorContains(t, err, "20 events or reports were lost", name)
		require.Equal(t, err, log.Close())
		require.Equal(t, 20, log.Dropped())
	}
}

// Options that cannot work are errors that say what to set.
func TestNew_Errors(t *testing.T) {
	t.Setenv("OPENPIPE_API_KEY", "")
	_, err := New(nil)
	require.ErrorContains(t, err, "OPENPIPE_API_KEY")
	_, err = New(&Options{APIKey: "k", BaseURL: "api.openpipe.ai"})
	require.ErrorContains(t, err, "https://api.openpipe.ai/api/v1")
}
