// Package track is what the trackers of backend/track share: a bounded queue behind [art.Events], rows of metrics
// without gaps and duplicates after a kill, a configuration without secrets, and ART's names of metrics.
package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/goart-dev/art"
)

// Row holds metrics of a step. The keys of a split other than "train" begin with the split, so that a key and a step
// name one value.
type Row struct {
	Time    time.Time
	Step    int
	Metrics map[string]float64
}

// Groups are trajectories of a split and step.
type Groups struct {
	Time   time.Time
	Split  string
	Step   int
	Groups []*art.TrajectoryGroup
	// Advantages are those of [art.TrainResult]; nil when unknown.
	Advantages [][]float64
	// Ratios are those of [art.TrainResult]; nil when unknown.
	Ratios []float32
}

// Values are metrics by step and key.
type Values map[int]map[string]float64

// Run stores what is told of one model. Its methods are called one at a time. After an error they are called again with
// the same arguments, later; ctx ends when the tracker is closed and its time is over.
type Run interface {
	// Written returns the metrics that earlier processes have stored of this run. It is called first.
	Written(ctx context.Context) (Values, error)
	// Config stores the configuration, nested maps of plain values. It is called again when the configuration changes.
	Config(ctx context.Context, config map[string]any) error
	// Rows stores metrics, by rising step.
	Rows(ctx context.Context, rows []Row) error
	// Groups stores trajectories, or nothing where the format has no place for them.
	Groups(ctx context.Context, g Groups) error
	// Close ends the run. failed says that the last training failed.
	Close(ctx context.Context, failed bool) error
}

// Rewinder is a [Run] that can take back what it has stored. Where a Run cannot, a metric that an earlier process
// stored for a step stays, and is not stored a second time when the step is made again.
type Rewinder interface {
	// Rewind takes back what was stored of steps that the run no longer has: of each step from the given one, what keep
	// lacks.
	Rewind(ctx context.Context, step int, keep Values) error
}

// Options of [New].
type Options struct {
	// Name of the tracker, for its log.
	Name string
	// Queue is the number of events that may wait, each with its trajectories; further ones are dropped. Default 64.
	Queue int
	// Timeout bounds [Tracker.Close], which tries again until then. Default 10 s.
	Timeout time.Duration
	// Config is added to the configuration of each run.
	Config map[string]any
	// Logger is told of failures and of what is dropped. Default: none.
	Logger *slog.Logger
	// Open begins or resumes what is stored of a model. It is tried again after an error.
	Open func(ctx context.Context, m *art.Model) (Run, error)
}

// Tracker hands events to runs on a goroutine of its own, so that training never waits for it.
type Tracker struct {
	opts   Options
	queue  *Queue[event]
	done   chan struct{}
	once   sync.Once
	ctx    context.Context // ends when Close has waited long enough
	cancel context.CancelFunc
	gap    atomic.Bool // an event was dropped since the last look

	runs  map[*art.Model]*run // of the goroutine, until done
	order []*run
	err   error // of Close, set before done
}

// event is what a callback was given, one of the pointers; none of a model that was registered.
type event struct {
	at     time.Time
	model  *art.Model
	step   int // of the model, at the time
	start  *art.TrainStart
	commit *art.Commit
	log    *art.LogEvent
	fail   *art.TrainError
}

// New starts a tracker.
func New(opts Options) *Tracker {
	opts.Queue = cmp.Or(opts.Queue, 64)
	opts.Timeout = cmp.Or(opts.Timeout, 10*time.Second)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Tracker{
		opts: opts, queue: NewQueue[event](opts.Queue), done: make(chan struct{}),
		runs: map[*art.Model]*run{},
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	go t.work()
	return t
}

// Events returns the callbacks of the tracker, for [art.ModelOptions].
func (t *Tracker) Events() *art.Events {
	return &art.Events{
		Register:   func(e art.Registration) { t.send(event{model: e.Model, step: e.Step}) },
		TrainStart: func(e art.TrainStart) { t.send(event{model: e.Model, step: e.Step - 1, start: &e}) },
		Commit:     func(e art.Commit) { t.send(event{model: e.Model, step: e.Result.Step - 1, commit: &e}) },
		TrainError: func(e art.TrainError) { t.send(event{model: e.Model, step: e.Step - 1, fail: &e}) },
		Log:        func(e art.LogEvent) { t.send(event{model: e.Model, step: e.Model.Step(), log: &e}) },
	}
}

// Dropped returns how many events, and how many batches of trajectories, were not stored because too many waited. Where
// the backend keeps a history, the metrics of dropped events are stored later.
func (t *Tracker) Dropped() int { return t.queue.Lost() }

// Close stores what waits, for [Options].Timeout at most, and ends the runs. The error says what could not be stored. A
// second call returns the same.
func (t *Tracker) Close() error {
	t.once.Do(func() {
		timer := time.AfterFunc(t.opts.Timeout, t.cancel)
		defer timer.Stop()
		t.queue.Close()
		<-t.done
		t.cancel()
	})
	<-t.done
	return t.err
}

// send queues an event, unless there is no room.
func (t *Tracker) send(e event) {
	e.at = time.Now()
	if t.queue.Send(e) {
		return
	}
	if !t.gap.Swap(true) {
		t.opts.Logger.Warn("tracker is too slow: events are dropped", "tracker", t.opts.Name)
	}
}

// work hands events to runs until Close.
func (t *Tracker) work() {
	defer close(t.done)
	retry := time.NewTicker(time.Second)
	defer retry.Stop()
	for {
		select {
		case e := <-t.queue.Items():
			t.take(e)
			for range len(t.queue.Items()) {
				t.take(<-t.queue.Items())
			}
			t.flush()
		case <-retry.C:
			t.flush()
		case <-t.queue.Closed():
			for range len(t.queue.Items()) {
				t.take(<-t.queue.Items())
			}
			gap := t.gap.Swap(false)
			var problems []error
			for _, r := range t.order {
				r.stale = r.stale || gap
				if err := r.close(t.ctx); err != nil {
					problems = append(problems, fmt.Errorf("%s: run %q: %w", t.opts.Name, r.model.Name(), err))
				}
			}
			if n := t.Dropped(); n > 0 {
				t.opts.Logger.Warn("tracker dropped events", "tracker", t.opts.Name, "events", n)
			}
			t.err = errors.Join(problems...)
			return
		}
	}
}

// take adds what an event tells to what waits of its model.
func (t *Tracker) take(e event) {
	r := t.runs[e.model]
	if r == nil {
		settings := ModelConfig(e.model)
		maps.Copy(settings, t.opts.Config)
		r = &run{t: t, model: e.model, step: e.step, since: time.Now(), settings: settings, stale: true, written: newSeen()}
		t.runs[e.model] = r
		t.order = append(t.order, r)
	}
	r.told = r.told || e.start != nil || e.commit != nil || e.log != nil || e.fail != nil
	switch {
	case e.start != nil:
		r.given = e.start.Config == nil
		if config := TrainConfig(*e.start); !reflect.DeepEqual(r.settings["train"], config) {
			r.settings = maps.Clone(r.settings)
			r.settings["train"] = config
		}
	case e.commit != nil:
		r.failed = false
		// A row has the metrics of the training and, unless its answers were given, those of its groups.
		result := e.commit.Result
		metrics := map[string]float64{}
		if !r.given {
			for key, value := range art.Metrics(e.commit.Groups...) {
				metrics["train/"+key] = value
			}
		}
		maps.Copy(metrics, result.Metrics)
		r.addRow(Row{e.at, result.Step - 1, underSplit("train", metrics)})
		r.addGroups(Groups{e.at, "train", result.Step - 1, e.commit.Groups, result.Advantages, result.Ratios})
	case e.log != nil:
		r.addRow(Row{e.at, e.log.Step, underSplit(e.log.Split, e.log.Metrics)})
		if e.log.Split != "train" { // those of "train" came with the commit
			r.addGroups(Groups{e.at, e.log.Split, e.log.Step, e.log.Groups, nil, nil})
		}
	case e.fail != nil:
		r.failed = true
	}
}

// flush stores what waits. After dropped events it looks for their metrics in the history.
func (t *Tracker) flush() {
	gap := t.gap.Swap(false)
	for _, r := range t.order {
		r.stale = r.stale || gap
		r.flush(time.Now())
	}
}

// ModelConfig describes a model: its options, and "chat" and "lora" below it.
func ModelConfig(m *art.Model) map[string]any {
	o := m.Options()
	return withoutZeros(map[string]any{
		"name": m.Name(), "project": o.Project, "base": o.Base, "adapter": o.Adapter, "fork": o.Fork,
		"frozen": o.Frozen, "tool_format": o.ToolFormat, "seed": o.Seed,
		"lora": withoutZeros(map[string]any{"rank": o.LoRA.Rank, "alpha": o.LoRA.Alpha}),
		"chat": structConfig(reflect.ValueOf(o.Chat)),
	})
}

// TrainConfig describes a training: the fields of its configuration, in snake case, and "kind", "rl", "sft" or "dpo".
func TrainConfig(e art.TrainStart) map[string]any {
	kind, of := "rl", reflect.ValueOf(e.Config)
	switch {
	case e.SFT != nil:
		kind, of = "sft", reflect.ValueOf(e.SFT)
	case e.DPO != nil:
		kind, of = "dpo", reflect.ValueOf(e.DPO)
	}
	config := structConfig(of.Elem())
	config["kind"] = kind
	return config
}

// structConfig returns the fields of a struct without functions, and what pointers point to.
func structConfig(v reflect.Value) map[string]any {
	config := map[string]any{}
	for field, value := range v.Fields() {
		for value.Kind() == reflect.Pointer && !value.IsNil() {
			value = value.Elem()
		}
		if value.Kind() == reflect.Slice && value.IsNil() || value.Kind() == reflect.Map && value.IsNil() {
			continue
		}
		switch value.Kind() {
		case reflect.Func, reflect.Pointer, reflect.Interface, reflect.Chan:
		case reflect.Struct:
			config[snake(field.Name)] = structConfig(value)
		case reflect.String:
			config[snake(field.Name)] = value.String()
		default:
			config[snake(field.Name)] = value.Interface()
		}
	}
	return withoutZeros(config)
}

// snake writes LearningRate as learning_rate, and KLCoefficient as kl_coefficient.
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		upper := unicode.IsUpper(c)
		after := i > 0 && !unicode.IsUpper(rune(name[i-1]))
		before := i > 0 && i+1 < len(name) && unicode.IsLower(rune(name[i+1]))
		if upper && (after || before) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// withoutZeros deletes what is empty, false or 0, seeds excepted.
func withoutZeros(config map[string]any) map[string]any {
	maps.DeleteFunc(config, func(key string, value any) bool {
		switch v := value.(type) {
		case string:
			return v == ""
		case bool:
			return !v
		case int:
			return v == 0
		case float64:
			return v == 0
		case map[string]any:
			return len(v) == 0
		}
		return false
	})
	return config
}

// Flatten returns nested maps as one, with "/" between keys.
func Flatten(config map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range config {
		inner, ok := value.(map[string]any)
		if !ok {
			out[key] = value
			continue
		}
		for below, v := range Flatten(inner) {
			out[key+"/"+below] = v
		}
	}
	return out
}

// File is a file of records that are appended, each whole or not at all.
type File struct {
	F    *os.File
	Size int64 // of complete records
}

// Append appends records. After an error, such as a full disk, it takes back a part that was written.
func (f *File) Append(b []byte) error {
	if _, err := f.F.WriteAt(b, f.Size); err != nil {
		return errors.Join(err, f.F.Truncate(f.Size))
	}
	f.Size += int64(len(b))
	return nil
}

// Close flushes the file to the disk, and closes it.
func (f *File) Close() error { return errors.Join(f.F.Sync(), f.F.Close()) }
