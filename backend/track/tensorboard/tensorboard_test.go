package tensorboard

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/protofield"
	"github.com/goart-dev/art/internal/track"
)

var update = flag.Bool("update", false, "write testdata; what TensorBoard shows only with ART_TENSORBOARD_PYTHON")

const (
	eventsFile = "testdata/run.tfevents"
	shownFile  = "testdata/tensorboard.json" // what TensorBoard shows of eventsFile
)

// sampled returns a reply of n tokens.
func sampled(text string, n int) art.Message {
	m := art.Assistant(text)
	m.Sample = &art.Sample{IDs: make([]int32, n), Logprobs: make([]float32, n)}
	return m
}

// session is a run of three steps that was killed in the third, and continued.
func session(now time.Time) []event {
	rows := []track.Row{
		{Time: now, Step: 1, Metrics: map[string]float64{"train/reward": 0.5, "loss/policy": -1e-9}},
		{Time: now, Step: 0, Metrics: map[string]float64{"train/reward": 0.25, "val/reward": 1e30}},
		{Time: now, Step: 2, Metrics: map[string]float64{"train/reward": 0.75, "val/reward": 3}},
	}
	good, bad := art.NewTrajectory(art.User("2+2"), sampled("four <b>*", 3)), art.NewTrajectory(art.User("2+2"))
	bad.Add(sampled("five", 1), sampled("six", 2))
	good.Reward, bad.Reward = 1, -1
	g := track.Groups{Split: "train", Step: 1, Advantages: [][]float64{{1, math.NaN()}},
		Groups: []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{good, bad, nil}}, nil}}
	config := map[string]any{"lr": 1e-4, "seed": uint64(3), "loss": "cispo", "frozen": false}
	again := []track.Row{{Time: now, Step: 2, Metrics: map[string]float64{"val/reward": 3}}}
	events := []event{{wall: now, start: true}, {wall: now, values: []value{sessionStart(now, config)}}}
	events = append(events, scalars(rows)...)
	events = append(events,
		event{wall: now, step: 1, values: append(histograms(g), textValue("train/trajectories", texts(g, 4)))},
		event{wall: now, step: 2, start: true})
	events = append(events, scalars(again)...)
	return append(events, event{wall: now, values: []value{sessionEnd(now, false)}})
}

// Importance ratios have a histogram, without those that are not finite.
func TestHistograms_Ratios(t *testing.T) {
	got := histograms(track.Groups{Split: "train", Ratios: []float32{1, 2, float32(math.Inf(1))}})
	want := protofield.AppendBytes(nil, 1, []byte("train/importance_ratios"))
	require.Equal(t, []value{protofield.AppendBytes(want, 5, histogram([]float64{1, 2}))}, got)
}

// shown is what TensorBoard shows.
type shown struct {
	Run        string                  `json:"run"`
	Scalars    map[string][][2]float64 `json:"scalars"`
	Histograms map[string][][4]float64 `json:"histograms"`
	Texts      map[string][][2]any     `json:"texts"`
	HParams    map[string]any          `json:"hparams"`
	Status     string                  `json:"status"`
}

// TensorBoard's server shows what was written: rows that a kill took back are gone, and what is kept is there once. The
// answers of the server are recorded; internal/dev/conformance/trackers/read_tensorboard.py says how to ask it again.
func TestRun_TensorBoard(t *testing.T) {
	now := time.Unix(1700000000, 0)
	file := appendFrame(nil, fileVersion(now))
	for _, e := range session(now) {
		file = appendFrame(file, e.encode())
	}
	if *update {
		require.NoError(t, os.WriteFile(eventsFile, file, 0o666))
	}
	golden, err := os.ReadFile(eventsFile)
	require.NoError(t, err)
	require.Equal(t, golden, file, "the recording is of another file: run with -update and ART_TENSORBOARD_PYTHON")

	answer, err := os.ReadFile(shownFile)
	if python := os.Getenv("ART_TENSORBOARD_PYTHON"); python != "" {
		dir := filepath.Join(t.TempDir(), "player")
		require.NoError(t, os.Mkdir(dir, 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "events.out.tfevents.1700000000.h.1.1"), file, 0o666))
		cmd := exec.Command(python, "../../../internal/dev/conformance/trackers/read_tensorboard.py", filepath.Dir(dir))
		var out, log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &log
		require.NoError(t, cmd.Run(), log.String())
		answer, err = out.Bytes(), nil
		if *update {
			require.NoError(t, os.WriteFile(shownFile, answer, 0o666))
		}
	}
	require.NoError(t, err)
	var got shown
	require.NoError(t, json.Unmarshal(answer, &got))
	require.Equal(t, "player", got.Run)
	require.Equal(t, [][2]float64{{0, 0.25}, {1, 0.5}}, got.Scalars["train/reward"], "step 2 was taken back")
	require.Equal(t, [][2]float64{{0, float64(float32(1e30))}, {2, 3}}, got.Scalars["val/reward"])
	require.Equal(t, [][2]float64{{1, float64(float32(-1e-9))}}, got.Scalars["loss/policy"])
	require.Equal(t, [][4]float64{{1, 2, -1, 1}}, got.Histograms["train/rewards"])
	require.Equal(t, 1.0, got.Histograms["train/advantages"][0][1], "NaN is left out")
	require.Equal(t, [][4]float64{{1, 3, 1, 3}}, got.Histograms["train/tokens_of_reply"])
	text := got.Texts["train/trajectories"][0][1].(string)
	require.Contains(t, text, "reward -1")
	require.Contains(t, text, "four &lt;b&gt;*", "not as Markdown or HTML")
	require.Equal(t, map[string]any{"lr": 1e-4, "seed": 3.0, "loss": "cispo", "frozen": false}, got.HParams)
	require.Equal(t, "STATUS_SUCCESS", got.Status)
}

// A run with a tracker has every metric of every step once, and a second process continues it.
func TestTracker_Continues(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		board, err := New(&Options{Dir: dir})
		require.NoError(t, err)
		m := art.NewModel("player", &art.ModelOptions{Project: "games", Events: board.Events()})
		require.NoError(t, m.Register(t.Context(), &arttest.Backend{}))
		for reward := range 3 {
			g := &art.TrajectoryGroup{Trajectories: []*art.Trajectory{{Reward: float64(reward)}}}
			_, err := m.Train(t.Context(), []*art.TrajectoryGroup{g}, nil)
			require.NoError(t, err)
		}
		require.NoError(t, board.Close())
		require.Zero(t, board.Dropped())
	}
	values, err := readScalars(filepath.Join(dir, "games", "player"))
	require.NoError(t, err)
	require.Len(t, values, 3)
	for step := range 3 {
		require.Equal(t, float64(step), values[step]["train/reward"])
	}
	files, err := os.ReadDir(filepath.Join(dir, "games", "player"))
	require.NoError(t, err)
	require.Len(t, files, 2)
}

// A kill in the middle of a record loses that record, and nothing else.
func TestReadScalars_Torn(t *testing.T) {
	golden, err := os.ReadFile(eventsFile)
	require.NoError(t, err)
	for n := range len(golden) {
		values := track.Values{}
		require.NoError(t, addFile(values, golden[:n]), "cut at %d", n)
		require.LessOrEqual(t, len(values), 3)
	}
	dir := t.TempDir()
	golden[20] ^= 1
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tfevents"), golden, 0o666))
	_, err = readScalars(dir)
	require.ErrorContains(t, err, "damaged")
	none, err := readScalars(filepath.Join(dir, "none"))
	require.NoError(t, err)
	require.Empty(t, none)
}

// A folder that cannot be made, and none, are errors at the start.
func TestNew_Errors(t *testing.T) {
	_, err := New(nil)
	require.ErrorContains(t, err, "Options.Dir is empty")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	_, err = New(&Options{Dir: filepath.Join(file, "x")})
	require.Error(t, err)
}

// A long text is cut between characters.
func TestTexts_Bounded(t *testing.T) {
	long := art.NewTrajectory(art.User(string(bytes.Repeat([]byte("ä"), 10<<20))))
	g := track.Groups{Groups: []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{long}}}}
	text := texts(g, 1)
	require.Len(t, text, 1)
	require.Less(t, len(text[0]), 3*maxText)
}

// Whatever a file holds, it is read or refused.
func FuzzReadScalars(f *testing.F) {
	golden, err := os.ReadFile(eventsFile)
	require.NoError(f, err)
	f.Add(golden)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = addFile(track.Values{}, data)
		_ = addEvent(track.Values{}, data)
	})
}

// Files that begin within a second are read in the order in which they were begun.
func TestCreate_Order(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for range 12 {
		w, err := create(dir)
		require.NoError(t, err)
		names = append(names, w.F.Name())
		require.NoError(t, w.Close())
	}
	files, err := eventFiles(dir)
	require.NoError(t, err)
	require.Equal(t, names, files)
}
