package openai_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/openai"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/ruler"
)

// TestComplete_Name: the API is asked for Base, and for the name of the model where there is none.
func TestComplete_Name(t *testing.T) {
	for _, test := range []struct {
		opts *art.ModelOptions
		want string
	}{
		{nil, `"gpt-5.4"`}, {&art.ModelOptions{Frozen: true}, `"gpt-5.4"`}, {&art.ModelOptions{Base: "org/other:free"}, `"org/other:free"`},
	} {
		s := newServer(t, said("Hi."))
		m := art.NewModel("gpt-5.4", test.opts)
		if err := m.Register(t.Context(), open(t, s, openai.Options{})); err != nil {
			t.Fatal(err)
		}
		if _, err := complete(t, m, nil); err != nil || s.field("model") != test.want {
			t.Errorf("%+v: asked for %s, error %v, want %s", test.opts, s.field("model"), err, test.want)
		}
	}
}

// TestRegister_StoresNothing: a model that only answers leaves no file, so that several processes may have it at once,
// and the next program may replace it under the same name.
func TestRegister_StoresNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	s := newServer(t, said(`{"scores": []}`))
	options := []*art.ModelOptions{{Base: "one", Frozen: true}, {Base: "two", Frozen: true}, {Base: "three"}, nil}
	for i, opts := range options {
		b := open(t, s, openai.Options{Dir: dir}) // those before are not closed yet
		judge := art.NewModel("judge", opts)
		if err := judge.Register(t.Context(), b); err != nil {
			t.Fatalf("registration %d: %v", i, err)
		}
		group := &art.TrajectoryGroup{Trajectories: []*art.Trajectory{
			art.NewTrajectory(art.User("Yes?"), art.Assistant("Yes.")), art.NewTrajectory(art.User("Yes?"), art.Assistant("No.")),
		}}
		if _, err := ruler.New(judge, nil).Score(t.Context(), group); err == nil {
			t.Error("the answer of the judge cannot be read, and there is no error")
		}
		var state any
		if found, err := judge.LoadState(t.Context(), &state); found || err != nil {
			t.Errorf("LoadState of a model of which nothing is stored: %v, %v", found, err)
		}
		rows, err := b.History(t.Context(), judge)
		groups, err2 := b.Trajectories(t.Context(), judge, "val", 0)
		if len(rows) > 0 || len(groups) > 0 || err != nil || err2 != nil {
			t.Errorf("%d rows, %d groups, errors %v and %v", len(rows), len(groups), err, err2)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of runs: %v", err)
	}
}

// logAs logs one reply of a model as the only run of a directory, in a process of its own.
func logAs(t *testing.T, dir, base string) (rows []art.HistoryRow, err error) {
	t.Helper()
	b := open(t, newServer(t, said("Hi.")), openai.Options{Dir: dir, Prices: prices})
	defer b.Close()
	m := art.NewModel("baseline", &art.ModelOptions{Base: base, Frozen: true})
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := complete(t, m, nil); err != nil {
		t.Fatal(err)
	}
	if err := m.Log(t.Context(), "val", nil, map[string]float64{"reward": 1}); err != nil {
		return nil, err
	}
	return b.History(t.Context(), m)
}

// TestLog_OtherBase: a baseline that logs has its rows, sums what all processes used, and goes on when another model
// takes its name.
func TestLog_OtherBase(t *testing.T) {
	dir := t.TempDir()
	for i, base := range []string{"one", "one", "two"} {
		rows, err := logAs(t, dir, base)
		if err != nil || len(rows) != 1 || rows[0].Metrics["costs/requests"] != float64(i+1) {
			t.Fatalf("log %d: rows %+v, error %v", i, rows, err)
		}
		if got := rundirBase(t, dir); got != base {
			t.Errorf("log %d: the run is of %q", i, got)
		}
	}
}

// storedRun writes a run as versions before this one did, when a model is registered.
func storedRun(t *testing.T, dir string, trained bool) {
	t.Helper()
	run, err := runs.Open(dir, "default", "baseline", nil)
	if err != nil {
		t.Fatal(err)
	}
	err = run.WriteModel(rundir.Description{Name: "baseline", Project: "default", Base: "tiny", Frozen: !trained})
	if trained {
		weights := func(dir string) error { return os.WriteFile(filepath.Join(dir, "w"), nil, 0o600) }
		err = errors.Join(err, run.Commit(0, weights))
	}
	if err := errors.Join(err, run.Log("val", 0, map[string]float64{"val/old": 2}), run.MergeState(map[string]int{"n": 3}),
		run.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestHistory_OfEarlierVersions: a run that exists is read before anything is logged, and continued by what is.
func TestHistory_OfEarlierVersions(t *testing.T) {
	dir := t.TempDir()
	storedRun(t, dir, false)
	b := open(t, newServer(t, said("Hi.")), openai.Options{Dir: dir})
	m := art.NewModel("baseline", nil)
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	var state struct{ N int }
	found, err := m.LoadState(t.Context(), &state)
	rows, err2 := b.History(t.Context(), m)
	if !found || state.N != 3 || len(rows) != 1 || err != nil || err2 != nil {
		t.Errorf("state %+v, %v, %v; rows %+v, %v", state, found, err, rows, err2)
	}
	err = m.SaveState(t.Context(), map[string]int{"m": 1})
	if err := errors.Join(err, m.Log(t.Context(), "val", nil, map[string]float64{"new": 1})); err != nil {
		t.Fatal(err)
	}
	rows, err = b.History(t.Context(), m)
	if err != nil || len(rows) != 1 || rows[0].Metrics["val/old"] != 2 || rows[0].Metrics["val/new"] != 1 {
		t.Errorf("rows %+v, error %v", rows, err)
	}
}

// TestLog_TrainedRun: the run of a model that is trained is not mixed with a baseline of the same name.
func TestLog_TrainedRun(t *testing.T) {
	dir := t.TempDir()
	storedRun(t, dir, true)
	if _, err := logAs(t, dir, "one"); !errors.Is(err, art.ErrInvalid) || !errors.As(err, new(*art.Error)) {
		t.Errorf("error %v", err)
	}
	if got := rundirBase(t, dir); got != "tiny" {
		t.Errorf("the run is of %s now", got)
	}
}

// rundirBase is the base of the only run of a directory.
func rundirBase(t *testing.T, dir string) string {
	t.Helper()
	list, err := rundir.List(dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d runs, error %v", len(list), err)
	}
	return list[0].About().Base
}
