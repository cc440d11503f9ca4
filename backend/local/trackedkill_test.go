package local

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/backend/track/mlflow"
	"github.com/goart-dev/art/backend/track/tensorboard"
	"github.com/goart-dev/art/backend/track/wandb"
	"github.com/goart-dev/art/internal/protofield"
)

// childURL is set in the child of TestKill_Trackers: the address of MLflow.
const childURL = "ART_TEST_TRACK_TO"

var randomKills = flag.Int("kills", 0, "how many trainings TestKill_TrackersAtRandom kills")

// trainTracked is trainIn with trackers: of files, and one that speaks to a server. trained is called when the backend
// is closed and the trackers are not.
func trainTracked(ctx context.Context, dir, url string, trained func()) error {
	runs, err := wandb.New(&wandb.Options{Dir: filepath.Join(dir, "wandb")})
	if err != nil {
		return err
	}
	board, err := tensorboard.New(&tensorboard.Options{Dir: filepath.Join(dir, "tensorboard")})
	if err != nil {
		return err
	}
	flow, err := mlflow.New(&mlflow.Options{URL: url})
	if err != nil {
		return err
	}
	err = trainIn(ctx, dir, resumeSteps, art.JoinEvents(runs.Events(), board.Events(), flow.Events()))
	trained()
	return errors.Join(err, runs.Close(), board.Close(), flow.Close())
}

// stored are the values of a metric at a step, in the order in which they were stored.
type stored map[string]map[int][]float64

func (s stored) add(key string, step int, value float64) {
	if s[key] == nil {
		s[key] = map[int][]float64{}
	}
	s[key][step] = append(s[key][step], value)
}

// fakeMLflow stores metrics of one run. It calls kill when metrics of step at arrive: before they are stored, or
// after, and then it does not answer, so that the client cannot know.
type fakeMLflow struct {
	mu      sync.Mutex
	metrics stored
	made    bool
	kill    func()
	at      int
	keep    bool          // what arrives is stored
	hold    chan struct{} // histories of metrics are not told before it is closed; may be nil
}

// metricOf is a metric of MLflow's API.
type metricOf struct {
	Key   string  `json:"key"`
	Value float64 `json:"value"`
	Step  int     `json:"step"`
}

func (f *fakeMLflow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // killed while it sent
	}
	run := map[string]any{"info": map[string]string{"run_id": "r"}}
	var list []metricOf
	switch strings.TrimPrefix(r.URL.Path, "/api/2.0/mlflow/") {
	case "runs/create":
		f.made = true
	case "runs/get":
		for key := range f.metrics {
			list = append(list, metricOf{Key: key})
		}
		run["data"] = map[string]any{"metrics": list}
	case "metrics/get-history":
		list = f.history(r.URL.Query().Get("metric_key"))
	case "runs/log-batch":
		if err := f.take(body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	answer := map[string]any{"experiment": map[string]string{"experiment_id": "1"}, "run": run, "metrics": list}
	if f.made {
		answer["runs"] = []any{run}
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}

// history returns the values of a metric, when they may be told.
func (f *fakeMLflow) history(key string) (list []metricOf) {
	if f.hold != nil {
		<-f.hold
	}
	for step, values := range f.metrics[key] {
		list = append(list, metricOf{key, values[0], step})
	}
	return list
}

// take stores a batch, unless the client is killed before.
func (f *fakeMLflow) take(body []byte) error {
	var batch struct {
		Metrics []metricOf `json:"metrics"`
	}
	if err := json.Unmarshal(body, &batch); err != nil {
		return err
	}
	kills := f.kill != nil && slices.ContainsFunc(batch.Metrics, func(m metricOf) bool { return m.Step >= f.at })
	if kills {
		f.kill()
	}
	if !kills || f.keep {
		for _, m := range batch.Metrics {
			f.metrics.add(m.Key, m.Step, m.Value)
		}
	}
	if kills {
		panic(http.ErrAbortHandler) // no answer
	}
	return nil
}

// readEvents reads the scalars of a folder as TensorBoard does: a session that starts purges what was before, from its
// step on, and a record that is cut off ends its file.
func readEvents(t *testing.T, dir string) stored {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*tfevents*")) // sorted
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := stored{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for len(b) >= 12 {
			n := int(binary.LittleEndian.Uint64(b))
			if len(b) < 12+n+4 {
				break
			}
			out.event(t, b[12:12+n])
			b = b[12+n+4:]
		}
	}
	return out
}

// event adds the scalars of an event.
func (s stored) event(t *testing.T, data []byte) {
	step := 0
	for f, err := range protofield.All(data) {
		require.NoError(t, err)
		switch f.Number {
		case 2:
			step = int(f.Bits)
		case 5:
			for v, err := range protofield.All(f.Data) {
				require.NoError(t, err)
				s.scalar(t, step, v.Data)
			}
		case 7:
			for _, values := range s {
				maps.DeleteFunc(values, func(at int, _ []float64) bool { return at >= step })
			}
		}
	}
}

func (s stored) scalar(t *testing.T, step int, value []byte) {
	tag := ""
	for f, err := range protofield.All(value) {
		require.NoError(t, err)
		switch f.Number {
		case 1:
			tag = string(f.Data)
		case 2:
			s.add(tag, step, float64(math.Float32frombits(uint32(f.Bits))))
		}
	}
}

// readRows reads the rows of a .wandb file, by its documented framing: a header of 7 bytes, and in each block of 32 KiB
// chunks of a checksum, a length, a kind (1 whole, 2 first, 3 middle, 4 last) and data.
func readRows(t *testing.T, file string) stored {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	out, record := stored{}, []byte(nil)
	for at := 7; at+7 <= len(b); {
		if room := 32<<10 - at%(32<<10); room < 7 {
			at += room
			continue
		}
		n, kind := int(binary.LittleEndian.Uint16(b[at+4:])), b[at+6]
		record = append(record, b[at+7:at+7+n]...)
		if kind == 1 || kind == 4 {
			out.record(t, record)
			record = nil
		}
		at += 7 + n
	}
	return out
}

// record adds the numbers of a record that is a row.
func (s stored) record(t *testing.T, record []byte) {
	for f, err := range protofield.All(record) {
		require.NoError(t, err)
		if f.Number != 2 { // history
			continue
		}
		row := map[string]float64{}
		for item, err := range protofield.All(f.Data) {
			require.NoError(t, err)
			key, value := "", ""
			for part, err := range protofield.All(item.Data) {
				require.NoError(t, err)
				if part.Number == 16 {
					value = string(part.Data)
				} else {
					key = string(part.Data)
				}
			}
			var number float64
			if json.Unmarshal([]byte(value), &number) == nil && !strings.HasPrefix(key, "_") {
				row[key] = number
			}
		}
		for key, value := range row {
			s.add(key, int(row["training_step"]), value)
		}
	}
}

// tracked is a folder of a training whose processes are killed, and the server of its trackers.
type tracked struct {
	*fakeMLflow
	dir, url string
}

func newTracked(t *testing.T) *tracked {
	k := &tracked{&fakeMLflow{metrics: stored{}}, t.TempDir(), ""}
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	k.url = server.URL
	return k
}

// start starts a training process, which is killed when the server is sent metrics of a step; 0 is never.
func (k *tracked) start(t *testing.T, at int, keep bool) (wait func() error, kill func()) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+k.dir, childURL+"="+k.url)
	var out strings.Builder
	cmd.Stderr = &out
	kill = func() { _ = cmd.Process.Kill() }
	k.mu.Lock()
	k.at, k.keep, k.kill = at, keep, kill
	if at == 0 {
		k.kill = nil
	}
	k.mu.Unlock()
	require.NoError(t, cmd.Start())
	return func() error {
		err := cmd.Wait()
		require.Empty(t, out.String(), "the child failed by itself")
		return err
	}, kill
}

// finish trains the rest, if any, in this process. The server is so slow that the backend is closed before a tracker
// knows what the server lacks.
func (k *tracked) finish(t *testing.T) {
	k.mu.Lock()
	k.kill, k.hold = nil, make(chan struct{})
	k.mu.Unlock()
	require.NoError(t, trainTracked(t.Context(), k.dir, k.url, func() { close(k.hold) }))
}

// TestKill_Trackers kills a training with trackers, when its metrics have arrived at a server that has not answered
// yet, and when they are lost, and lets another process continue; the last one has nothing left to train. No tracker
// has a gap or a value twice.
func TestKill_Trackers(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	k := newTracked(t)
	for _, kill := range []struct {
		at   int
		keep bool
	}{{1, true}, {3, false}, {resumeSteps - 1, false}} {
		wait, _ := k.start(t, kill.at, kill.keep)
		require.Error(t, wait(), "the child was not killed")
	}
	k.finish(t)
	k.requireComplete(t, func(string) bool { return true })
}

// TestKill_TrackersAtRandom kills trainings with trackers at random moments. A step that MLflow was told, and that is
// made again, keeps its first times there.
func TestKill_TrackersAtRandom(t *testing.T) {
	if *randomKills == 0 {
		t.Skip("takes a second for each kill: -kills says how many")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	k := newTracked(t)
	for killed := 0; killed < *randomKills; {
		wait, kill := k.start(t, 0, false)
		timer := time.AfterFunc(time.Duration(rng.Int64N(int64(time.Second))), kill)
		err := wait()
		timer.Stop()
		if err != nil {
			killed++
			continue
		}
		k.requireComplete(t, repeatable) // the run was through: begin another to be killed in
		k = newTracked(t)
	}
	k.finish(t)
	k.requireComplete(t, repeatable)
}

// repeatable reports whether a metric has the same value when its step is made again.
func repeatable(key string) bool {
	section, _, _ := strings.Cut(key, "/")
	return !slices.Contains([]string{"time", "throughput", "memory", "device"}, section) && key != "train/duration"
}

// requireComplete compares all trackers with the history. MLflow has the value of a metric only where exact says so.
func (k *tracked) requireComplete(t *testing.T, exact func(key string) bool) {
	t.Helper()
	history := historyOf(t, k.dir)
	require.Len(t, history["train/reward"], resumeSteps)
	k.mu.Lock()
	defer k.mu.Unlock()
	all := func(string) bool { return true }
	requireStored(t, history, k.metrics, "MLflow", exact)
	requireStored(t, history, readEvents(t, filepath.Join(k.dir, "tensorboard", "default", "m")), "TensorBoard", all)
	files, err := filepath.Glob(filepath.Join(k.dir, "wandb", "*", "*.wandb"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	rows := readRows(t, files[0])
	for key, steps := range rows {
		for step, values := range steps {
			require.True(t, key == "training_step" || len(values) == 1, "W&B: %s at %d is %v", key, step, values)
		}
	}
	require.Len(t, rows["train/reward"], resumeSteps)
	for step, want := range history["train/reward"] {
		require.InDelta(t, want[0], rows["train/reward"][step][0], 1e-9)
	}
}

// historyOf is what the run itself has stored.
func historyOf(t *testing.T, dir string) stored {
	t.Helper()
	run, err := rundir.Open(filepath.Join(dir, "default", "models", "m"))
	require.NoError(t, err)
	rows, err := run.History()
	require.NoError(t, err)
	out := stored{}
	for _, row := range rows {
		for key, value := range row.Metrics {
			if key != "time/wall_clock_sec" { // trackers have clocks of their own
				out.add(key, row.Step, value)
			}
		}
	}
	return out
}

// requireStored requires the values of the history, each once, in single precision where they are exact; there may be
// more metrics.
func requireStored(t *testing.T, history, got stored, name string, exact func(key string) bool) {
	t.Helper()
	for key, steps := range history {
		for step, values := range steps {
			at := fmt.Sprintf("%s: %s at step %d", name, key, step)
			require.Len(t, got[key][step], 1, at)
			want := float32(values[len(values)-1])
			require.True(t, want == float32(got[key][step][0]) || !exact(key), at)
		}
	}
	for key, steps := range got {
		for step, values := range steps {
			require.Len(t, values, 1, "%s: %s at step %d", name, key, step)
		}
	}
}
