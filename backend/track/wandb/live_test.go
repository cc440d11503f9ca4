package wandb

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// cloud answers as much of W&B's API as a run needs.
type cloud struct {
	*httptest.Server
	status int // of all answers; 0 is 200

	mu     sync.Mutex
	keys   map[string]bool // that were sent
	rows   []map[string]any
	again  int // lines that came twice
	config map[string]any
	files  map[string]string
	exit   []float64
}

func newCloud(t *testing.T) *cloud {
	c := &cloud{keys: map[string]bool{}, files: map[string]string{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != 0 {
		w.WriteHeader(c.status)
		return
	}
	body, _ := io.ReadAll(req.Body)
	if name, ok := strings.CutPrefix(req.URL.Path, "/upload/"); ok {
		if _, _, auth := req.BasicAuth(); !auth && req.Header.Get("X-Kind") == "file" {
			c.files[name] = string(body)
		}
		return
	}
	_, key, _ := req.BasicAuth()
	c.keys[key] = true
	var in map[string]any
	_ = json.Unmarshal(body, &in)
	if req.URL.Path == "/files/team/games/player/file_stream" {
		c.stream(in)
		_, _ = w.Write([]byte("{}"))
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": c.graphql(in["query"].(string), in["variables"])})
}

func (c *cloud) graphql(query string, variables any) any {
	in, _ := variables.(map[string]any)
	switch {
	case strings.Contains(query, "viewer"):
		return map[string]any{"viewer": map[string]any{"id": "u", "entity": "team"}}
	case strings.Contains(query, "RunResumeStatus"):
		if len(c.rows) == 0 {
			return map[string]any{"model": nil}
		}
		return map[string]any{"model": map[string]any{"bucket": map[string]any{"historyLineCount": len(c.rows)}}}
	case strings.Contains(query, "upsertBucket"):
		c.config = map[string]any{}
		_ = json.Unmarshal([]byte(in["config"].(string)), &c.config)
	case strings.Contains(query, "createRunFiles"):
		name := in["files"].([]any)[0].(string)
		return map[string]any{"createRunFiles": map[string]any{"uploadHeaders": []string{"X-Kind:file"},
			"files": []any{map[string]any{"name": name, "uploadUrl": c.URL + "/upload/" + name}}}}
	}
	return map[string]any{}
}

func (c *cloud) stream(in map[string]any) {
	if in["complete"] == true {
		c.exit = append(c.exit, in["exitcode"].(float64))
		return
	}
	part := in["files"].(map[string]any)["wandb-history.jsonl"].(map[string]any)
	for i, line := range part["content"].([]any) {
		row := map[string]any{}
		_ = json.Unmarshal([]byte(line.(string)), &row)
		if at := int(part["offset"].(float64)) + i; at < len(c.rows) {
			c.rows[at] = row
			c.again++
		} else if at == len(c.rows) {
			c.rows = append(c.rows, row)
		}
	}
}

// train makes steps with rewards 0, 1, ...
func train(t *testing.T, o *Options, steps int) error {
	t.Helper()
	runs, err := New(o)
	require.NoError(t, err)
	m := art.NewModel("player", &art.ModelOptions{Project: "games", Events: runs.Events()})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{}))
	for reward := range steps {
		g := &art.TrajectoryGroup{Trajectories: []*art.Trajectory{{Reward: float64(reward)}}}
		_, err := m.Train(t.Context(), []*art.TrajectoryGroup{g}, nil)
		require.NoError(t, err)
	}
	return runs.Close()
}

// rewards returns those of the rows, and that W&B's steps rise.
func (c *cloud) rewards(t *testing.T) (out []any) {
	last := -1.0
	for _, row := range c.rows {
		require.Greater(t, row["_step"], last)
		last = row["_step"].(float64)
		if x, ok := row["train/reward"]; ok {
			out = append(out, x)
		}
	}
	return out
}

// Rows, tables and configuration go to the server as they are made, and a second process continues where it was.
func TestLive(t *testing.T) {
	c := newCloud(t)
	o := &Options{Dir: t.TempDir(), APIKey: "key", BaseURL: c.URL, Config: map[string]any{"token": "x"}}
	require.NoError(t, train(t, o, 2))
	require.NoError(t, train(t, o, 4))
	require.Equal(t, []any{0.0, 1.0, 2.0, 3.0}, c.rewards(t))
	require.Zero(t, c.again)
	require.Equal(t, map[string]bool{"key": true}, c.keys)
	require.Equal(t, []float64{0, 0}, c.exit)
	require.NotEmpty(t, c.files)
	for _, row := range c.rows {
		if object, ok := row["train/trajectories"].(map[string]any); ok {
			require.Contains(t, c.files, object["path"])
		}
	}
	value := func(key string) any { return c.config[key].(map[string]any)["value"] }
	require.Equal(t, "[redacted]", value("token"))
	require.Equal(t, "tiny", value("base"))
	globs := []any{}
	for _, m := range value("_wandb").(map[string]any)["m"].([]any) {
		globs = append(globs, m.(map[string]any)["2"])
	}
	require.ElementsMatch(t, []any{nil, "data/*", "train/*"}, globs)
}

// The definitions of metrics are those that the Python client sends, as recorded in testdata.
func TestLive_Metrics(t *testing.T) {
	data, err := os.ReadFile(syncedFile)
	require.NoError(t, err)
	var recorded struct{ Client received }
	require.NoError(t, json.Unmarshal(data, &recorded))
	c := newCloud(t)
	sections := []string{"train", "val", "loss"}
	server := newClient(Options{BaseURL: c.URL, Project: "games", Entity: "team", Timeout: time.Minute}, "player")
	require.NoError(t, server.upsert(t.Context(), "player", nil, sections))
	sent := c.config["_wandb"].(map[string]any)["value"].(map[string]any)["m"].([]any)
	var got []map[string]any
	for _, m := range sent {
		delete(m.(map[string]any), "7")
		got = append(got, m.(map[string]any))
	}
	require.Equal(t, recorded.Client.Metrics, got)
}

// A server that answers 500 or hangs costs training nothing. The file has everything, the error says how to send it,
// and a later process sends it.
func TestLive_Failures(t *testing.T) {
	c := newCloud(t)
	c.status = http.StatusInternalServerError
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	for name, address := range map[string]string{"500": c.URL, "hangs": hanging.URL} {
		o := &Options{Dir: t.TempDir(), APIKey: "key", BaseURL: address, Timeout: 300 * time.Millisecond}
		start := time.Now()
		err := train(t, o, 10)
		require.Less(t, time.Since(start), 10*time.Second, name)
		require.ErrorContains(t, err, "wandb sync "+filepath.Join(o.Dir, "offline-run-"), name)
		dir, err := findRun(o.Dir, "player")
		require.NoError(t, err)
		r := &offline{id: "player", dir: dir, h: newHistory(false, time.Now())}
		values, err := r.Written(t.Context())
		require.NoError(t, err)
		require.Len(t, values, 10, name)

		up := newCloud(t)
		o.BaseURL, o.Timeout = up.URL, time.Minute
		require.NoError(t, train(t, o, 11))
		require.Len(t, up.rewards(t), 11, name)
	}
}

// A run that was logged from elsewhere is not mixed with the one here.
func TestLive_Elsewhere(t *testing.T) {
	c := newCloud(t)
	c.rows = make([]map[string]any, 50)
	err := train(t, &Options{Dir: t.TempDir(), APIKey: "key", BaseURL: c.URL, Timeout: 200 * time.Millisecond}, 1)
	require.ErrorContains(t, err, "give the model another name")
	require.Len(t, c.rows, 50)
}
