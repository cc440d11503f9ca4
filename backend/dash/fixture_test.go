package dash_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/runs"
)

// sampled is a reply with a token for each byte.
func sampled(text string, step int, logprob float32) art.Message {
	m := art.Assistant(text)
	s := &art.Sample{PromptIDs: []int32{1, 2, 3}, Step: step, Finish: art.FinishStop}
	for _, b := range []byte(text) {
		s.IDs, s.Logprobs = append(s.IDs, int32(b)), append(s.Logprobs, logprob)
	}
	m.Sample = s
	return m
}

// trajectory asks and answers.
func trajectory(reward float64, step int, question, answer string) *art.Trajectory {
	t := art.NewTrajectory(art.System("Be brief."), art.User(question), sampled(answer, step, -0.5))
	t.Reward, t.Duration = reward, time.Second
	t.Start = time.Date(2026, 11, 1, 12, 0, step, 0, time.UTC)
	return t
}

// stepGroups are what a step of the fixture was trained on.
func stepGroups(step int) []*art.TrajectoryGroup {
	return []*art.TrajectoryGroup{
		{Trajectories: []*art.Trajectory{trajectory(0, step, "2+2?", "five"), trajectory(1, step, "2+2?", "four")},
			Failures: []art.Failure{{Attempt: 2, Tries: 1, Type: "*errors.errorString", Message: "the tool broke"}}},
		{Trajectories: []*art.Trajectory{trajectory(0.5, step, "3+3?", "six"), trajectory(0.5, step, "3+3?", "VI")}},
	}
}

// store makes a run PROJECT/NAME with a number of trained steps below a root, and returns its folder.
func store(t testing.TB, root, project, name string, steps int, groups func(step int) []*art.TrajectoryGroup) string {
	t.Helper()
	r, err := runs.Open(root, project, name, nil)
	require.NoError(t, err)
	defer r.Close()
	about := rundir.Description{Name: name, Project: project, Base: "tiny", Seed: 7, Device: "CPU"}
	require.NoError(t, r.WriteModel(about))
	write := func(dir string) error { return os.WriteFile(filepath.Join(dir, "weights"), []byte("w"), 0o644) }
	require.NoError(t, r.Commit(0, write))
	for step := range steps {
		require.NoError(t, r.CommitUpdate(step+1, runs.Update{Groups: groups(step), Metrics: map[string]float64{
			"reward": float64(step) / 10, "loss/policy": -0.1, "loss/entropy": 1, "time/train_s": 1, "time/step_wall_s": 3,
			"time/rollout_s": 1.2, "time/judge_s": 0.5, "memory/resident_bytes": 3e9, "memory/device_work_bytes": 1e9,
			"data/tokens_sampled": 80, "data/trajectories": 4, "data/groups": 2, "data/skipped_no_variance": 1,
			"data/cum/tokens_sampled": float64(80 * (step + 1)),
		}}, write))
	}
	require.NoError(t, r.Log("val", steps, map[string]float64{"reward": 0.75}))
	return r.Dir()
}

// serve serves a page without access control of its own but the Host check.
func serve(t testing.TB, opts *dash.Options) *httptest.Server {
	t.Helper()
	h, err := dash.New(opts)
	require.NoError(t, err)
	return startHandler(t, h)
}

func startHandler(t testing.TB, h *dash.Handler) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(func() { require.NoError(t, h.Close()); s.Close() })
	return s
}

// get returns a page.
func get(t testing.TB, s *httptest.Server, path string) (status int, body string) {
	t.Helper()
	response, err := s.Client().Get(s.URL + path)
	require.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	requireSafe(t, response)
	return response.StatusCode, string(content)
}

// texts are what a page says: without the escapes of HTML.
func texts(t testing.TB, s *httptest.Server, path string) string {
	_, body := get(t, s, path)
	return html.UnescapeString(body)
}

// requireSafe requires the headers that keep a browser from running what a page was not meant to have.
func requireSafe(t testing.TB, response *http.Response) {
	t.Helper()
	policy := response.Header.Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
	require.Equal(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
}

// pages are the addresses of all pages about the fixture.
var pages = []string{
	"/", "/?metric=val/reward&x=time&log=1&bands=1&smooth=0", "/?run=games/player-1&x=tokens&logx=1", "/run?run=games/player-1",
	"/run?run=games/player-1&section=loss&x=tokens", "/groups?run=games/player-1", "/groups?run=games/player-1&view=time",
	"/groups?run=games/player-1&view=batch", "/groups?run=games/player-1&min=0.6&failed=1&sort=spread",
	"/group?run=games/player-1&group=0", "/group?run=games/player-1&group=1&color=logprob&order=length",
	"/group?run=games/player-1&color=advantage", "/group?run=games/player-1&color=forced&order=attempt",
	"/scenario?run=games/player-1", "/scenario?run=games/player-1&by=index", "/search?run=games/player-1",
	"/search?run=games/player-1&q=four", "/search?run=games/player-1&failed=1", "/stars?run=games/player-1",
	"/csv?run=games/player-1", "/text?run=games/player-1&group=0&trajectory=0&message=1",
}

func TestPages_ShowWhatIsStored(t *testing.T) {
	root := t.TempDir()
	store(t, root, "games", "player-1", 3, stepGroups)
	s := serve(t, &dash.Options{Dir: root})
	for _, path := range pages {
		status, body := get(t, s, path)
		require.Equal(t, http.StatusOK, status, "%s\n%s", path, body)
	}
	for path, want := range map[string][]string{
		"/":                                    {"games/player-1", "0.75", "tiny"},
		"/?bands=1":                            {"games/player (1 run)", "the mean of its runs"},
		"/run?run=games/player-1&section=loss": {"./csv?metric=loss%2Fentropy&run=games%2Fplayer-1"},
		"/run?run=games/player-1": {"Entropy, nats", "all rewards are equal", "Where the time goes", "best val/reward",
			"train trajectories", "judging", "waiting and all else", "Memory, bytes", "memory/device_work_bytes"},
		"/groups?run=games/player-1": {"4 trajectories in 2 groups", "no: all rewards are equal",
			"1 failed rollout"},
		"/run?run=games/player-1&logx=1":             {`name="logx" value="1" checked`, "What is at step 0 is left out"},
		"/run?run=games/player-1&log=1&section=loss": {`name="log" value="1" checked`, `name="logx" value="1">`},
		"/groups?run=games/player-1&min=0.6":         {"1 group of 2"},
		"/groups?run=games/player-1&view=batch": {"saved by sharing prompts", "a prompt of 3 tokens, 2 sequences",
			"sampled, not trained on</th><td>5</td>", "sampled, trained on</th><td>8</td>"},
		"/groups?run=games/player-1&view=time": {"rollouts", "judging", "17 %", "training", "1s"},
		"/group?run=games/player-1&group=0": {"+1", "-1", "2 trajectories", "mean reward <b>0.5</b>", "Be brief.",
			"four", "the tool broke"},
		"/search?run=games/player-1&q=FOUR":         {"<mark>four</mark>"},
		"/group?run=games/player-1&color=logprob":   {"Probability when sampled"},
		"/search?run=games/player-1&q=four&max=0.5": {"Nothing has all of that"},
		"/search?run=games/player-1&failed=1":       {"the tool broke"},
		"/scenario?run=games/player-1&group=1":      {"3+3?", "step 2", "step 0", "six", "0.5 (0.5 to 0.5)"},
		"/csv?run=games/player-1&metric=val/reward": {"val,3,0.75"},
	} {
		for _, text := range want {
			require.Contains(t, texts(t, s, path), text, path)
		}
	}
}

// TestPages_OddRuns: a folder that is not there, a run that has just begun and files that are damaged are told of, and
// hide nothing else.
func TestPages_OddRuns(t *testing.T) {
	root := t.TempDir()
	s := serve(t, &dash.Options{Dir: filepath.Join(root, "nothing")})
	status, body := get(t, s, "/")
	require.Equal(t, http.StatusOK, status, body)
	require.Contains(t, body, "No runs yet")

	store(t, root, "games", "player-1", 2, stepGroups)
	store(t, root, "games", "new-1", 0, nil)
	about := filepath.Join(store(t, root, "games", "broken-1", 1, stepGroups), "model.json")
	require.NoError(t, os.WriteFile(about, []byte("{"), 0o644))
	file := filepath.Join(store(t, root, "games", "cut-1", 1, stepGroups), "trajectories", "train", "0000.parquet")
	require.NoError(t, os.Truncate(file, 100))
	s = serve(t, &dash.Options{Dir: root})
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/":                                {200, "Left out: broken-1"},
		"/?q=player":                       {200, "games/player-1"},
		"/?q=new":                          {200, "games/new-1"},
		"/run?run=games/new-1":             {200, "step <b>0</b>"},
		"/search?run=games/new-1&q=x":      {200, "Nothing has all of that"},
		"/stars?run=games/new-1":           {200, "No trajectory is starred"},
		"/csv?run=games/new-1":             {200, "split,step"},
		"/groups?run=games/new-1":          {404, "has no trajectories"},
		"/scenario?run=games/new-1":        {404, "has no trajectories"},
		"/run?run=games/broken-1":          {500, "model.json"},
		"/run?run=games/cut-1":             {200, "Entropy, nats"},
		"/groups?run=games/cut-1":          {500, "0000.parquet"},
		"/group?run=games/cut-1&group=0":   {500, "0000.parquet"},
		"/search?run=games/cut-1&q=four":   {500, "0000.parquet"},
		"/search?run=games/player-1&q=VI":  {200, "<mark>VI</mark>"},
		"/group?run=games/player-1&step=1": {200, "four"},
	} {
		status, body := get(t, s, path)
		require.Equal(t, want.status, status, "%s\n%s", path, body)
		require.Contains(t, html.UnescapeString(body), want.text, path)
	}
}

func TestPages_NotFound(t *testing.T) {
	root := t.TempDir()
	store(t, root, "games", "player-1", 1, stepGroups)
	s := serve(t, &dash.Options{Dir: root})
	for path, want := range map[string]int{
		"/nothing": 404, "/run": 400, "/run?run=games/other": 404, "/run?run=../../etc": 400, "/run?run=games/..": 400,
		"/run?run=games/player-1&section=none": 404, "/groups?run=games/player-1&split=../..": 404,
		"/groups?run=games/player-1&split=train&step=9": 404, "/groups?run=games/player-1&step=-1": 400,
		"/groups?run=games/player-1&view=other": 400, "/group?run=games/player-1&group=99": 400,
		"/group?run=games/player-1&color=change": 400, "/text?run=games/player-1&trajectory=9": 404, "/judge": 404,
		"/assets/app.js": 404, "/assets/..%2fdash.go": 404, "/run?run=" + strings.Repeat("a", 5000): 400,
		"/..%2f..%2fetc/passwd": 404,
	} {
		status, body := get(t, s, path)
		require.Equal(t, want, status, "%s\n%s", path, body)
	}
}

// TestPages_StayInFolder: no name of a run, split or step reads a file elsewhere.
func TestPages_StayInFolder(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	store(t, outside, "p", "secret", 1, func(int) []*art.TrajectoryGroup {
		return []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{trajectory(1, 0, "password?", "hunter2")}}}
	})
	store(t, root, "games", "player-1", 1, stepGroups)
	s := serve(t, &dash.Options{Dir: root})
	up := "../../../../../../../../../.." + outside + "/p"
	for _, path := range []string{"/run", "/groups", "/group", "/search?q=hunter2", "/stars", "/csv", "/text"} {
		sign := "?"
		if strings.Contains(path, "?") {
			sign = "&"
		}
		for _, name := range []string{up + "/models/secret", "games/" + up, up + "/secret", ".", "..",
			"games/player-1/../../x", "games%2f..%2f" + up, "games\\player-1"} {
			for _, split := range []string{"train", "../" + up, ".."} {
				query := fmt.Sprintf("run=%s&split=%s&step=0&group=0", name, split)
				status, body := get(t, s, path+sign+query)
				require.GreaterOrEqual(t, status, 400, query)
				require.NotContains(t, body, "hunter2<")
				require.Less(t, status, 500, body)
			}
		}
	}
}
