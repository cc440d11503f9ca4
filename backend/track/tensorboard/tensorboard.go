// Package tensorboard writes event files for TensorBoard: metrics as scalars, rewards, advantages and lengths as
// histograms, some trajectories as text, and the configuration as hyperparameters.
//
//	board, err := tensorboard.New(&tensorboard.Options{Dir: "tb"})
//	defer board.Close()
//	model := art.NewModel("player", &art.ModelOptions{Events: board.Events()})
//
// and, in a terminal, tensorboard --logdir tb. The x-axis is the step that earned the rewards, as in the history of a
// run. A resumed run continues its curves: what is missing comes from the history of the backend, and what the run no
// longer has is purged from its step on, histograms and texts included.
package tensorboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/track"
)

// Options of [New]. Zero values are the defaults.
type Options struct {
	// Dir is where to write, DIR/PROJECT/NAME for each model. Required.
	Dir string
	// Texts is the number of trajectories of each step and split that are written as text. Default 4; negative is none.
	Texts int
	// Config is added to the hyperparameters. What is named or looks like a secret is redacted.
	Config map[string]any
	// Logger is told of failures and of what is dropped. nil is silent.
	Logger *slog.Logger
}

// Tracker writes event files. See the documentation of the package.
type Tracker struct{ t *track.Tracker }

// New starts a tracker. An error says what is wrong with opts, or that the folder cannot be made.
func New(opts *Options) (*Tracker, error) {
	if opts == nil || opts.Dir == "" {
		return nil, errors.New("tensorboard: Options.Dir is empty: name the folder that tensorboard --logdir shows")
	}
	o := *opts
	if o.Texts == 0 {
		o.Texts = 4
	}
	if err := os.MkdirAll(o.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("tensorboard: %w", err)
	}
	return &Tracker{track.New(track.Options{
		Name: "tensorboard", Config: o.Config, Logger: o.Logger,
		Open: func(_ context.Context, m *art.Model) (track.Run, error) {
			dir := filepath.Join(o.Dir, m.Options().Project, m.Name())
			return &run{dir: dir, texts: max(o.Texts, 0)}, nil
		},
	})}, nil
}

// Events returns the callbacks of the tracker, for [art.ModelOptions].
func (t *Tracker) Events() *art.Events { return t.t.Events() }

// Dropped returns how many events were not stored because too many waited. Their metrics are stored later where the
// backend keeps a history.
func (t *Tracker) Dropped() int { return t.t.Dropped() }

// Close writes what waits, and the end of each run. The error says what could not be written.
func (t *Tracker) Close() error { return t.t.Close() }

// run is the folder of one model: a [track.Run].
type run struct {
	dir   string
	texts int
	file  *track.File // nil until something is written
}

func (r *run) Written(context.Context) (track.Values, error) { return readScalars(r.dir) }

// write appends events, all or none.
func (r *run) write(events ...event) error {
	if r.file == nil {
		file, err := create(r.dir)
		if err != nil {
			return err
		}
		r.file = file
	}
	var b []byte
	for _, e := range events {
		b = appendFrame(b, e.encode())
	}
	return r.file.Append(b)
}

func (r *run) Config(_ context.Context, config map[string]any) error {
	return r.write(event{wall: time.Now(), values: []value{sessionStart(time.Now(), track.Flatten(config))}})
}

func (r *run) Rows(_ context.Context, rows []track.Row) error {
	return r.write(scalars(rows)...)
}

// Rewind implements [track.Rewinder]: it begins a session at the step, before which readers keep what they have.
func (r *run) Rewind(_ context.Context, step int, keep track.Values) error {
	events := []event{{wall: time.Now(), step: step, start: true}}
	var rows []track.Row
	for at, metrics := range keep {
		if at >= step {
			rows = append(rows, track.Row{Time: time.Now(), Step: at, Metrics: metrics})
		}
	}
	return r.write(append(events, scalars(rows)...)...)
}

func (r *run) Groups(_ context.Context, g track.Groups) error {
	values := histograms(g)
	if text := texts(g, r.texts); len(text) > 0 {
		values = append(values, textValue(g.Split+"/trajectories", text))
	}
	return r.write(event{wall: g.Time, step: g.Step, values: values})
}

func (r *run) Close(_ context.Context, failed bool) error {
	if r.file == nil {
		return nil
	}
	err := r.write(event{wall: time.Now(), values: []value{sessionEnd(time.Now(), failed)}})
	return errors.Join(err, r.file.Close())
}
