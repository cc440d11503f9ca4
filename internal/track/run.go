package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/secret"
)

// Limits on what waits for a format that fails or is slow.
const (
	maxRows   = 4096
	maxGroups = 8
	minPause  = time.Second
	maxPause  = time.Minute
)

// run is what waits for one model, and what was stored.
type run struct {
	t     *Tracker
	model *art.Model
	step  int       // of the model when the tracker first heard of it
	since time.Time // when that was: the time of rows of the history, the same at each try

	told    bool  // of more than its registration
	out     Run   // nil until it is open
	begun   bool  // written is known
	written *seen // rows
	stale   bool  // the history may have more than was told

	settings      map[string]any // of model and trainings
	stored        map[string]any // of which out was told
	given, failed bool           // of the last training: on given answers; not made
	rows          []Row
	groups        []Groups
	pause         time.Duration // after the last failure
	next          time.Time     // not before
	problem       error         // of the last try
}

// addRow lets a row wait. When too many do, it is left to the history, if the backend has one.
func (r *run) addRow(row Row) {
	if len(r.rows) < maxRows {
		r.rows = append(r.rows, row)
		return
	}
	r.stale = true
	r.t.queue.Lose(1)
}

// addGroups lets trajectories wait. When too many do, the oldest are dropped.
func (r *run) addGroups(g Groups) {
	if len(g.Groups) == 0 {
		return
	}
	if len(r.groups) == maxGroups {
		r.groups = slices.Delete(r.groups, 0, 1)
		r.t.queue.Lose(1)
	}
	r.groups = append(r.groups, g)
}

// flush stores what waits, unless the last failure is too recent.
func (r *run) flush(now time.Time) {
	if now.Before(r.next) {
		return
	}
	err := r.store(r.t.ctx)
	if err == nil {
		r.pause, r.problem = 0, nil
		return
	}
	if r.problem == nil {
		r.t.opts.Logger.Warn("tracker failed, and will try again",
			"tracker", r.t.opts.Name, "run", r.model.Name(), "error", err)
	}
	r.problem = err
	r.pause = min(max(2*r.pause, minPause), maxPause)
	r.next = time.Now().Add(r.pause)
}

// store stores all that waits, in order. A model that was registered, and has neither a history nor news, may never
// have any: nothing is opened for it.
func (r *run) store(ctx context.Context) error {
	var missed []Row // of the history, if it may have more than was told
	var unread error // what waits is stored all the same
	if r.stale {
		var history Values
		history, _, unread = r.history(ctx)
		for _, step := range slices.Sorted(maps.Keys(history)) {
			missed = append(missed, Row{r.since, step, history[step]})
		}
	}
	if !r.told && len(missed) == 0 {
		return unread
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	// The configuration is complete when a training has started.
	if r.told && !reflect.DeepEqual(r.settings, r.stored) {
		if err := r.out.Config(ctx, secret.Redact(r.settings)); err != nil {
			return err
		}
		r.stored = r.settings
	}
	rows := append(slices.Clone(r.rows), missed...)
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Step, b.Step) })
	rows = r.written.news(rows)
	if len(rows) > 0 {
		if err := r.out.Rows(ctx, rows); err != nil {
			return err
		}
	}
	r.written.add(rows)
	r.rows = nil
	r.stale = r.stale && unread != nil
	for len(r.groups) > 0 {
		if err := r.out.Groups(ctx, r.groups[0]); err != nil {
			return err
		}
		r.groups = slices.Delete(r.groups, 0, 1)
	}
	return unread
}

// begin opens the run, reads what earlier processes stored, and takes back what the run no longer has.
func (r *run) begin(ctx context.Context) error {
	if r.begun {
		return nil
	}
	if r.out == nil {
		out, err := r.t.opts.Open(ctx, r.model)
		if err != nil {
			return err
		}
		r.out = out
	}
	values, err := r.out.Written(ctx)
	if err != nil {
		return err
	}
	rewinder, ok := r.out.(Rewinder)
	if ok && len(values) > 0 {
		history, known, err := r.history(ctx)
		if err != nil {
			return err
		}
		if known {
			var lost bool
			if values, lost = remaining(values, history, r.step); lost {
				if err := rewinder.Rewind(ctx, r.step, values); err != nil {
					return err
				}
			}
		}
	}
	r.written.read(values, !ok)
	r.begun = true
	return nil
}

// historian is a backend that keeps a history. Those that keep no checkpoints are not all driver.CheckpointKeeper.
type historian interface {
	History(ctx context.Context, m *art.Model) ([]art.HistoryRow, error)
}

// history returns what the backend has logged. ok is false when it keeps no history.
func (r *run) history(ctx context.Context) (values Values, ok bool, err error) {
	keeper, ok := r.model.Backend().(historian)
	if !ok {
		return nil, false, nil
	}
	rows, err := keeper.History(ctx, r.model)
	if errors.Is(err, art.ErrUnsupported) || errors.Is(err, art.ErrFrozen) { // a snapshot has no run
		return nil, false, nil
	}
	if err != nil {
		return nil, true, fmt.Errorf("the backend's history, for metrics that may be missing: %w", err)
	}
	values = Values{}
	for _, row := range rows {
		if values[row.Step] == nil {
			values[row.Step] = map[string]float64{}
		}
		maps.Copy(values[row.Step], underSplit(row.Split, row.Metrics))
	}
	return values, true, nil
}

// storeLast stores what waits, and tries again until ctx ends or the backend has no history any more.
func (r *run) storeLast(ctx context.Context) error {
	for pause := minPause / 10; ; pause *= 2 {
		err := r.store(ctx)
		if err == nil || errors.Is(err, art.ErrClosed) || errors.Is(err, art.ErrNotRegistered) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// close stores what waits and ends the run.
func (r *run) close(ctx context.Context) error {
	err := r.storeLast(ctx)
	if r.out != nil {
		if closing := r.out.Close(ctx, r.failed); err == nil {
			err = closing
		}
	}
	if err != nil && len(r.rows)+len(r.groups) > 0 {
		return fmt.Errorf("%d rows and %d batches of trajectories were not stored: %w", len(r.rows), len(r.groups), err)
	}
	return err
}

// keyWallClock is stored with each row of a run directory; trackers have clocks of their own.
const keyWallClock = "time/wall_clock_sec"

// keptSteps is the number of steps whose values are remembered, to notice what is new.
const keptSteps = 1000

// underSplit gives the keys of a split other than "train" the split as prefix, so that a key and a step name one value.
func underSplit(split string, metrics map[string]float64) map[string]float64 {
	out := make(map[string]float64, len(metrics))
	for key, value := range metrics {
		if key == keyWallClock {
			continue
		}
		if split != "train" && !strings.HasPrefix(key, split+"/") {
			key = split + "/" + key
		}
		out[key] = value
	}
	return out
}

// Number returns what is stored of a number as JSON: text where JSON has none.
func Number(x float64) any {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "Infinity"
	case math.IsInf(x, -1):
		return "-Infinity"
	}
	return x
}

// value is a stored metric, in the precision of TensorBoard.
type value struct {
	bits  uint32
	final bool // stored by an earlier process, and cannot be taken back
}

func bitsOf(x float64) uint32 { return math.Float32bits(float32(x)) }

// seen holds what was stored, by step and key. What is older than floor is not compared any more.
type seen struct {
	steps map[int]map[string]value
	floor int
}

func newSeen() *seen { return &seen{map[int]map[string]value{}, math.MinInt} }

// read takes what earlier processes have stored.
func (s *seen) read(values Values, final bool) {
	for step, metrics := range values {
		s.steps[step] = map[string]value{}
		for key, x := range metrics {
			s.steps[step][key] = value{bitsOf(x), final}
		}
	}
}

// news returns what is new or has changed, in the rows that have it. Of several values of a key and step, the last
// counts.
func (s *seen) news(rows []Row) []Row {
	type name struct {
		step int
		key  string
	}
	fresh := map[name]int{} // index of the row
	out := make([]Row, len(rows))
	for i, row := range rows {
		out[i] = Row{row.Time, row.Step, map[string]float64{}}
		for key, x := range row.Metrics {
			at := name{row.Step, key}
			before, waits := fresh[at]
			switch old, ok := s.steps[row.Step][key]; {
			case row.Step < s.floor, ok && (old.final || old.bits == bitsOf(x)) && !waits:
			case waits && bitsOf(out[before].Metrics[key]) == bitsOf(x):
			default:
				if waits {
					delete(out[before].Metrics, key)
				}
				out[i].Metrics[key], fresh[at] = x, i
			}
		}
	}
	return slices.DeleteFunc(out, func(row Row) bool { return len(row.Metrics) == 0 })
}

// add remembers rows that were stored, and forgets those of steps long ago.
func (s *seen) add(rows []Row) {
	for _, row := range rows {
		if s.steps[row.Step] == nil {
			s.steps[row.Step] = map[string]value{}
		}
		for key, x := range row.Metrics {
			s.steps[row.Step][key] = value{bits: bitsOf(x)}
		}
		s.floor = max(s.floor, row.Step-keptSteps)
	}
	maps.DeleteFunc(s.steps, func(step int, _ map[string]value) bool { return step < s.floor })
}

// remaining returns what the run still has of written, after it was resumed at step: everything of earlier steps, and
// of later ones what is in its history. lost reports whether something is gone.
func remaining(written, history Values, step int) (keep Values, lost bool) {
	keep = Values{}
	for at, metrics := range written {
		kept := map[string]float64{}
		for key, x := range metrics {
			old, ok := history[at][key]
			if at < step || ok && bitsOf(old) == bitsOf(x) {
				kept[key] = x
			} else {
				lost = true
			}
		}
		keep[at] = kept
	}
	return keep, lost
}
