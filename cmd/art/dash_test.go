package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/runs"
)

// smallRun stores a run with two measurements, and returns its root.
func smallRun(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	r, err := runs.Open(root, "games", "player", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	trajectory := art.NewTrajectory(art.User("ask"), art.Assistant("answer"))
	for _, err := range []error{
		r.WriteModel(rundir.Description{Name: "player", Project: "games", Base: "tiny\x1b[2J"}),
		r.Log("val", 0, map[string]float64{"reward": 0.25}),
		r.WriteTrajectories("val", 0, []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{trajectory}}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestDash serves the page to those who have the link.
func TestDash(t *testing.T) {
	root := smallRun(t)
	ctx, cancel := context.WithCancel(t.Context())
	read, written := io.Pipe()
	d := dasher{addr: "127.0.0.1:0"}
	ended := make(chan error, 1)
	go func() { ended <- d.serve(ctx, []string{root}, written, io.Discard) }()
	line, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	_, link, _ := strings.Cut(strings.TrimSpace(line), " at ")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	for address, want := range map[string]string{link: "games/player"} {
		response, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: %v, no %q in\n%s", address, err, want, body)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := d.serve(t.Context(), []string{filepath.Join(root, "none")}, io.Discard, io.Discard); err == nil {
		t.Error("a folder that does not exist is served")
	}
}

// TestWatch prints what there is. What a run stores does not reach the terminal as it is.
func TestWatch(t *testing.T) {
	t.Setenv("ART_DIR", smallRun(t))
	status, stdout, stderr := command("runs", "watch", "--once", "player")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %q", status, stderr)
	}
	for _, want := range []string{"games/player", "step 0", "val/reward", "0.25", "tiny␛[2J"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Errorf("escape sequences in %q", stdout)
	}
	if status, _, _ := command("runs", "watch"); status != 2 {
		t.Errorf("without a run: status %d", status)
	}
}

// TestWatch_Follows prints a line for each row as it is logged.
func TestWatch_Follows(t *testing.T) {
	root := smallRun(t)
	r, _, err := rundir.Find(root, "player")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read, written := io.Pipe()
	w := watcher{every: time.Millisecond, now: time.Now}
	ended := make(chan error, 1)
	go func() { ended <- w.follow(ctx, r, written) }()
	lines := bufio.NewReader(read)
	for _, want := range []string{"val step 0  val/reward 0.25\n", "test step 0\n"} {
		if got, err := lines.ReadString('\n'); err != nil || got != want {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
		open, err := runs.Open(root, "games", "player", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := open.Log("test", 0, map[string]float64{"other": 1}); err != nil {
			t.Fatal(err)
		}
		if err := open.Close(); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestWatch_Settled: a line is printed when its row is complete, once, and without escape sequences.
func TestWatch_Settled(t *testing.T) {
	w := watcher{}
	row := func(step int, metrics ...string) art.HistoryRow {
		r := art.HistoryRow{Split: "train", Step: step, Metrics: map[string]float64{}}
		for _, m := range metrics {
			r.Metrics[m] = 1
		}
		return r
	}
	for i, c := range []struct {
		rows []art.HistoryRow
		want string
	}{
		{nil, ""}, {[]art.HistoryRow{row(0, "loss/policy")}, ""},
		{[]art.HistoryRow{row(0, "loss/policy", "train/reward")}, ""},
		{[]art.HistoryRow{row(0, "loss/policy", "train/reward")}, "train step 0  train/reward 1  loss/policy 1\n"},
		{[]art.HistoryRow{row(0, "loss/policy", "train/reward")}, ""},
		{[]art.HistoryRow{row(0), row(1), row(2, "loss/policy")}, "train step 1\n"},
		{[]art.HistoryRow{row(0), row(1), row(2, "loss/policy"), row(3)}, "train step 2  loss/policy 1\n"},
	} {
		if got := w.news(c.rows); got != c.want {
			t.Errorf("look %d: %q, want %q", i, got, c.want)
		}
	}
	if w.newest != "train step 3\n" {
		t.Errorf("%q waits", w.newest)
	}
}

// TestNewestStep has shares computed by hand. The newest row may be of another split.
func TestNewestStep(t *testing.T) {
	rows := []art.HistoryRow{
		{Split: "train", Step: 0, Metrics: map[string]float64{"time/step_wall_s": 9}},
		{Split: "train", Step: 1, Metrics: map[string]float64{
			"time/step_wall_s": 4, "time/rollout_s": 2, "time/train_s": 1, "data/skipped_no_variance": 3,
			"data/skipped_too_long": 0, "data/skipped_\x1b": 1,
		}},
		{Split: "val", Step: 2, Metrics: map[string]float64{"val/reward": 1}},
	}
	want := "step took 4s: rollouts 50 %, training 25 %, waiting and all else 25 %\n" +
		"not trained on: ␛ 1, no_variance 3\n"
	if got := newestStep(rows); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := newestStep(rows[2:]); got != "" {
		t.Errorf("without a training: %q", got)
	}
}

func TestCurveOf(t *testing.T) {
	for want, values := range map[string][]float64{
		"": {}, "▁": {3}, "▁▁": {2, 2}, "▁█": {1, 9}, "▁▅█": {0, 0, 3, 5, 8, 8},
	} {
		if got := curveOf(values, 3); got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
	}
}
