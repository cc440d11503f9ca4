package wandb

import (
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/secret"
	"github.com/goart-dev/art/internal/track"
)

var update = flag.Bool("update", false, "write testdata; what wandb sync uploads only with ART_WANDB_PYTHON")

const (
	runFile    = "testdata/run.wandb"
	syncedFile = "testdata/synced.json" // what wandb sync uploads of runFile
)

// received is what a server receives of a run.
type received struct {
	Rows    []map[string]any          `json:"rows"`
	Summary map[string]any            `json:"summary"`
	Config  map[string]any            `json:"config"`
	Metrics []map[string]any          `json:"metrics"`
	Files   map[string]map[string]any `json:"files"`
	Exit    int                       `json:"exit"`
}

// writeRun writes a run that was killed and continued, at fixed times.
func writeRun(t *testing.T, dir string) {
	start := time.Unix(1700000000, 0)
	o := Options{Tables: 16, Project: "games", Entity: "team"}
	values := track.Values{}
	for process := range 2 {
		r := &offline{opts: o, id: "player", name: "player", dir: dir, h: newHistory(false, start)}
		written, err := r.Written(t.Context())
		require.NoError(t, err)
		if process == 1 {
			require.Equal(t, values, written)
			require.NoError(t, r.Rewind(t.Context(), 2, track.Values{2: {"val/reward": 5}}))
		}
		require.NoError(t, r.Config(t.Context(), map[string]any{"lora": map[string]any{"rank": 8}, "base": "tiny"}))
		steps := []int{0, 1, 2}
		if process == 1 {
			steps = []int{2, 3}
		}
		for _, step := range steps {
			at := start.Add(time.Duration(10*process+step) * time.Second)
			metrics := map[string]float64{"train/reward": float64(step) + float64(process)/2, "loss/policy": -1e-9}
			require.NoError(t, r.Rows(t.Context(), []track.Row{{Time: at, Step: step, Metrics: metrics}}))
			values[step] = metrics
			x := art.NewTrajectory(art.User("2+2"), art.Assistant("four"))
			x.Reward = math.Inf(1)
			g := track.Groups{Time: at, Split: "train", Step: step,
				Groups: []*art.TrajectoryGroup{nil, {Trajectories: []*art.Trajectory{x, nil}}}}
			if step == 1 {
				require.NoError(t, r.Groups(t.Context(), g))
			}
		}
		if process == 0 {
			at := start.Add(3 * time.Second)
			val := track.Row{Time: at, Step: 2, Metrics: map[string]float64{"val/reward": 5, "val/worst": math.Inf(-1)}}
			require.NoError(t, r.Rows(t.Context(), []track.Row{val}))
			values[2] = map[string]float64{
				"train/reward": 2, "loss/policy": -1e-9, "val/reward": 5, "val/worst": math.Inf(-1)}
		}
		require.NoError(t, r.file.write(summaryRecord(r.h.summary), exitRecord(false, 14*time.Second)))
		require.NoError(t, r.file.Close())
	}
}

// The real wandb sync uploads a file that was killed and continued, and what arrives equals what the Python client
// sends of the same rows. What arrived is recorded; internal/dev/conformance/trackers/sync_wandb.py says how to ask
// again.
func TestOffline_Synced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "offline-run-20231114_221320-player")
	writeRun(t, dir)
	file, err := os.ReadFile(filepath.Join(dir, "run-player.wandb"))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(runFile, file, 0o666))
	}
	golden, err := os.ReadFile(runFile)
	require.NoError(t, err)
	require.Equal(t, golden, file, "the recording is of another file: run with -update and ART_WANDB_PYTHON")

	answer, err := os.ReadFile(syncedFile)
	if python := os.Getenv("ART_WANDB_PYTHON"); python != "" {
		cmd := exec.Command(python, "../../../internal/dev/conformance/trackers/sync_wandb.py", dir)
		cmd.Stderr = os.Stderr
		answer, err = cmd.Output()
		if err == nil && *update {
			require.NoError(t, os.WriteFile(syncedFile, answer, 0o666))
		}
	}
	require.NoError(t, err)
	var got struct {
		ID             string
		Synced, Client received
	}
	require.NoError(t, json.Unmarshal(answer, &got))
	require.Equal(t, "player", got.ID)
	var rewards []any
	tables := 0
	for _, row := range got.Synced.Rows {
		if x, ok := row["train/reward"]; ok {
			rewards = append(rewards, []any{row[keyStep], x})
			require.Equal(t, -1e-9, row["loss/train"], "by the name of ART")
		}
		if object, ok := row["train/trajectories"].(map[string]any); ok {
			tables++
			shown := got.Synced.Files[object["path"].(string)]
			require.Equal(t, []any{1.0, 0.0, "Infinity", nil, 0.0, "user: 2+2\nassistant: four\n", "{}"},
				shown["data"].([]any)[0])
			delete(row, "train/trajectories")
		}
	}
	require.Equal(t, []any{[]any{0.0, 0.0}, []any{1.0, 1.0}, []any{2.0, 2.5}, []any{3.0, 3.5}}, rewards)
	require.Equal(t, 1, tables)
	require.Equal(t, 3.5, got.Synced.Summary["train/reward"])
	require.Equal(t, 5.0, got.Synced.Summary["val/reward"])
	require.Equal(t, map[string]any{"lora": map[string]any{"rank": 8.0}, "base": "tiny"}, got.Synced.Config)

	require.Equal(t, got.Client.Config, got.Synced.Config)
	require.Equal(t, got.Client.Exit, got.Synced.Exit)
	require.ElementsMatch(t, got.Client.Metrics, got.Synced.Metrics)
	require.Equal(t, withoutEmpty(got.Client.Rows), withoutEmpty(got.Synced.Rows))
}

// withoutEmpty leaves out rows that held nothing but a table.
func withoutEmpty(rows []map[string]any) []map[string]any {
	var out []map[string]any
	for _, row := range rows {
		if len(row) > 2 {
			out = append(out, row)
		}
	}
	return out
}

// A tracker writes a run, and a second process continues the same file.
func TestTracker_Continues(t *testing.T) {
	dir := t.TempDir()
	for steps := range 3 {
		runs, err := New(&Options{Dir: dir, Config: map[string]any{"password": "hunter2"}})
		require.NoError(t, err)
		m := art.NewModel("b player", &art.ModelOptions{Events: runs.Events()})
		require.NoError(t, m.Register(t.Context(), &arttest.Backend{}))
		for reward := range steps + 1 {
			g := &art.TrajectoryGroup{Trajectories: []*art.Trajectory{{Reward: float64(reward)}}}
			_, err := m.Train(t.Context(), []*art.TrajectoryGroup{g}, nil)
			require.NoError(t, err)
		}
		require.NoError(t, runs.Close())
	}
	found, err := findRun(dir, "b-player")
	require.NoError(t, err)
	file, err := os.ReadFile(filepath.Join(found, "run-b-player.wandb"))
	require.NoError(t, err)
	require.NotContains(t, string(file), "hunter2")
	require.Contains(t, string(file), secret.Redacted)
	r := &offline{id: "b-player", dir: found, h: newHistory(false, time.Now())}
	values, err := r.Written(t.Context())
	require.NoError(t, err)
	require.Len(t, values, 3)
	for step := range 3 {
		require.Equal(t, float64(step), values[step]["train/reward"])
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// Records of any size are read back, and a file that ends anywhere gives the records before.
func TestRecords_Framing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	file := append([]byte(nil), fileHeader...)
	var want [][]byte
	var ends []int
	for range 60 {
		record := make([]byte, random.IntN(1+random.IntN(3*blockSize)))
		for i := range record {
			record[i] = byte(random.Uint32())
		}
		file = appendRecord(file, int64(len(file)), record)
		want, ends = append(want, record), append(ends, len(file))
	}
	got, err := readRecords(file)
	require.NoError(t, err)
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, string(want[i]), string(got[i]))
	}
	for range 200 {
		n := random.IntN(len(file))
		got, err := readRecords(file[:n])
		require.NoError(t, err)
		complete := 0
		for _, end := range ends {
			if end <= n {
				complete++
			}
		}
		require.Len(t, got, complete)
	}
	file[ends[5]+chunkHead-1] ^= 7
	_, err = readRecords(file)
	require.ErrorContains(t, err, "damaged")
}

// The names of ART go there and back.
func TestNames_Inverse(t *testing.T) {
	require.Len(t, ownNames, len(artNames))
	for own, name := range artNames {
		require.Equal(t, name, new(history).name(own, artNames))
		require.Equal(t, own, new(history).name(name, ownNames))
		require.Equal(t, own, (&history{own: true}).name(own, artNames))
	}
}

// A message of 10 MB does not make a table of this size.
func TestTable_LongText(t *testing.T) {
	long := art.NewTrajectory(art.User(strings.Repeat("é", 5<<20)), art.Assistant("end"))
	long.Messages[1].ToolCalls = []art.ToolCall{{Name: "f", Arguments: strings.Repeat("x", 10<<20)}}
	g := track.Groups{Split: "train", Groups: []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{long, long}}}}
	_, file, _, err := table(g, 16)
	require.NoError(t, err)
	require.Less(t, len(file), 3*maxCell)
	require.True(t, utf8.Valid(file))
	require.Contains(t, string(file), "é ...")
}

// A name that W&B would not take is an error.
func TestRunID(t *testing.T) {
	id, err := runID("a b:c")
	require.NoError(t, err)
	require.Equal(t, "a-b-c", id)
	_, err = runID(strings.Repeat("x", 129))
	require.Error(t, err)
}

// Whatever a file holds, it is read or refused.
func FuzzReadRecords(f *testing.F) {
	golden, err := os.ReadFile(runFile)
	require.NoError(f, err)
	f.Add(golden)
	f.Fuzz(func(t *testing.T, data []byte) {
		records, _ := readRecords(data)
		for _, record := range append(records, data) {
			if kind, content, err := kindOfRecord(record); err == nil && kind == fieldHistory {
				_, _ = rowOf(content)
			}
			withNumber(record, 1)
		}
	})
}
