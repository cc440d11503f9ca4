package dash_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/grpo/dataset"
)

// answers is a group of three.
func answers() *art.TrajectoryGroup {
	return &art.TrajectoryGroup{Trajectories: []*art.Trajectory{
		trajectory(0.25, 0, "Say hello.", "no"), trajectory(0.5, 0, "Say hello.", "hello"),
		trajectory(0.75, 0, "Say hello.", "hi"),
	}}
}

// waitingID is the group that the page shows.
func waitingID(t *testing.T, s *httptest.Server) string {
	t.Helper()
	for range 2000 {
		_, body := get(t, s, "/judge")
		if m := regexp.MustCompile(`name="id" value="(\d+)"`).FindStringSubmatch(body); m != nil {
			return m[1]
		}
	}
	t.Fatal("no group waits")
	return ""
}

// judged runs a gather whose group a person scores with a form.
func judged(t *testing.T, form url.Values) ([]*art.TrajectoryGroup, error) {
	t.Helper()
	judge := dash.NewJudge()
	s := serve(t, &dash.Options{Dir: t.TempDir(), Judge: judge})
	type result struct {
		groups []*art.TrajectoryGroup
		err    error
	}
	done := make(chan result, 1)
	all := answers().Trajectories
	go func() {
		groups, err := art.GatherGroups(t.Context(), []int{0}, func(ctx context.Context, _ int) (*art.Trajectory, error) {
			attempt := all[0]
			all = all[1:]
			return attempt, nil
		}, &art.GatherOptions{GroupSize: 3, Concurrency: 1, After: judge.Score})
		done <- result{groups, err}
	}()
	form.Set("id", waitingID(t, s))
	response, err := s.Client().PostForm(s.URL+"/judge", form)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode)
	r := <-done
	return r.groups, r.err
}

func TestJudge_RanksBecomeRewards(t *testing.T) {
	groups, err := judged(t, url.Values{"mode": {"rank"}, "v0": {"3"}, "v1": {"1"}, "v2": {"1"}, "note": {"be polite"}})
	require.NoError(t, err)
	var rewards []float64
	for _, trajectory := range groups[0].Trajectories {
		rewards = append(rewards, trajectory.Reward)
		require.Equal(t, trajectory.Reward, trajectory.Metrics[dash.HumanScore])
		require.Contains(t, trajectory.Logs, "person: be polite")
	}
	require.Equal(t, []float64{0, 0.75, 0.75}, rewards)
	require.Equal(t, 0.25, groups[0].Trajectories[0].Metrics["independent_reward"])
}

func TestJudge_ScoresAndDrops(t *testing.T) {
	groups, err := judged(t, url.Values{"mode": {"score"}, "v0": {"-2"}, "v1": {"7.5"}, "v2": {"0"}})
	require.NoError(t, err)
	require.Equal(t, 7.5, groups[0].Trajectories[1].Reward)
	groups, err = judged(t, url.Values{"drop": {"1"}})
	require.NoError(t, err)
	require.Empty(t, groups)
}

func TestJudge_Refuses(t *testing.T) {
	judge := dash.NewJudge()
	s := serve(t, &dash.Options{Dir: t.TempDir(), Judge: judge})
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { _, err := judge.Score(ctx, answers()); done <- err }()
	id := waitingID(t, s)
	for want, form := range map[int][]url.Values{
		400: {{"id": {id}}, {"id": {id}, "v0": {"1"}, "v1": {"x"}, "v2": {"1"}}, {"id": {id}, "v0": {"1"}, "v1": {"2"}},
			{"id": {id}, "v0": {"NaN"}, "v1": {"2"}, "v2": {"1"}}, {"id": {"x"}}},
		404: {{"id": {"99"}, "v0": {"1"}, "v1": {"2"}, "v2": {"3"}}},
	} {
		for _, f := range form {
			response, err := s.Client().PostForm(s.URL+"/judge", f)
			require.NoError(t, err)
			response.Body.Close()
			require.Equal(t, want, response.StatusCode, f)
		}
	}
	reason := errors.New("enough")
	cancel(reason)
	require.ErrorIs(t, <-done, reason)
	_, body := get(t, s, "/judge")
	require.Contains(t, body, "Nothing to judge")
	empty := &art.TrajectoryGroup{}
	groups, err := judge.Score(t.Context(), empty)
	require.NoError(t, err)
	require.Equal(t, []*art.TrajectoryGroup{empty}, groups)
}

// TestStars_KeepTheView: a star leads back to what was shown.
func TestStars_KeepTheView(t *testing.T) {
	root := t.TempDir()
	store(t, root, "games", "player-1", 1, func(step int) []*art.TrajectoryGroup {
		g := &art.TrajectoryGroup{}
		for i := range 20 {
			g.Trajectories = append(g.Trajectories, trajectory(float64(i), step, "Count.", strconv.Itoa(i)))
		}
		return []*art.TrajectoryGroup{g}
	})
	s := serve(t, &dash.Options{Dir: root, Stars: true})
	_, body := get(t, s, "/group?run=games/player-1&from=16&order=attempt")
	form := url.Values{}
	star := regexp.MustCompile(`(?s)class="star">(.*?)</form>`).FindStringSubmatch(body)[1]
	for _, m := range regexp.MustCompile(`name="(\w+)" value="([^"]*)"`).FindAllStringSubmatch(star, -1) {
		form.Set(m[1], m[2])
	}
	response, err := s.Client().PostForm(s.URL+"/star", form)
	require.NoError(t, err)
	defer response.Body.Close()
	query := response.Request.URL.Query()
	require.Equal(t, []string{"16", "attempt"}, []string{query.Get("from"), query.Get("order")})
	_, body = get(t, s, "/"+response.Request.URL.Path[1:]+"?"+response.Request.URL.RawQuery)
	require.Contains(t, body, "★ starred")
}

// TestStars_AreExamples: starred trajectories are lines that art sft reads, and taking a star back removes its line.
func TestStars_AreExamples(t *testing.T) {
	root := t.TempDir()
	dir := store(t, root, "games", "player-1", 2, stepGroups)
	post := func(s *httptest.Server, trajectory int, on string) int {
		response, err := s.Client().PostForm(s.URL+"/star", url.Values{"run": {"games/player-1"}, "split": {"train"},
			"step": {"1"}, "group": {"0"}, "trajectory": {strconv.Itoa(trajectory)}, "on": {on}})
		require.NoError(t, err)
		defer response.Body.Close()
		return response.StatusCode
	}
	readOnly := serve(t, &dash.Options{Dir: root})
	require.Equal(t, http.StatusForbidden, post(readOnly, 0, "1"))
	_, body := get(t, readOnly, "/group?run=games/player-1&step=1")
	require.NotContains(t, body, "/star")
	s := serve(t, &dash.Options{Dir: root, Stars: true})
	examples := func() (list []string) {
		for record, err := range dataset.Stream[art.Example]([]string{dir + "/stars.jsonl"}, nil) {
			require.NoError(t, err)
			trajectory := record.Value.Trajectory()
			list = append(list, trajectory.Messages[len(trajectory.Messages)-1].Content)
		}
		return list
	}
	require.Equal(t, 200, post(s, 1, "1"))
	require.Equal(t, 200, post(s, 1, "1"))
	require.Equal(t, 200, post(s, 0, "1"))
	require.Equal(t, []string{"four", "five"}, examples())
	require.Contains(t, texts(t, s, "/stars?run=games/player-1"), "train step 1, group 0, trajectory 1")
	require.Contains(t, texts(t, s, "/group?run=games/player-1&step=1"), "★ starred")
	require.Equal(t, 200, post(s, 1, ""))
	require.Equal(t, []string{"five"}, examples())
	old := time.Now().Add(-time.Hour)
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, old, old))
	}))
	require.Equal(t, 200, post(s, 0, "1"))
	require.Contains(t, texts(t, s, "/"), "1h00m ago", "a star is no sign that a run trains")
	for _, bad := range []int{9, -1} {
		require.GreaterOrEqual(t, post(s, bad, "1"), 400)
	}
	require.Equal(t, fmt.Sprint([]string{"five"}), fmt.Sprint(examples()))

	newer := []byte(`{"messages":[],"star":{"format":2,"place":"elsewhere"}}` + "\n")
	require.NoError(t, os.WriteFile(dir+"/stars.jsonl", newer, 0o644))
	require.GreaterOrEqual(t, post(s, 0, "1"), 400)
	kept, err := os.ReadFile(dir + "/stars.jsonl")
	require.NoError(t, err)
	require.Equal(t, string(newer), string(kept), "what a newer version wrote is kept")
}
