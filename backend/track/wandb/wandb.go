// Package wandb logs runs to Weights & Biases: metrics over the training step, the configuration, a summary, and tables
// of trajectories. It writes the files of W&B's offline mode, without a network and without W&B's software:
//
//	runs, err := wandb.New(&wandb.Options{Dir: "wandb"})
//	defer runs.Close()
//	model := art.NewModel("player", &art.ModelOptions{Events: runs.Events()})
//
// and "wandb sync wandb/offline-run-*" uploads them. The id of a run is the name of the model, as in ART, and metrics
// that ART 0.5.23 has too are called as there.
//
// With an [Options].APIKey the same rows go to the server too, as they are made. What it does not take stays in the
// file, for "wandb sync", and is sent when the server answers again, also by a later process. That part follows what
// the client wandb 0.31 was seen to send to a server on the same machine; W&B has not published the protocol.
//
// A resumed run continues its file: what is missing comes from the history of the backend, and what the run no longer
// has is removed from the file; with an APIKey it stays. A run that was uploaded before needs
// "wandb sync --include-synced".
package wandb

import (
	"cmp"
	"context"
	"errors"

	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/track"
)

// Options of [New]. Zero values are the defaults.
type Options struct {
	// Dir is where to write, a folder offline-run-TIME-ID for each run. Default "wandb".
	Dir string
	// Entity is the user or team. Empty is the default of whoever uploads.
	Entity string
	// Project defaults to the project of the model.
	Project string
	// OwnNames keeps the names of docs/metrics.md for metrics that have another in ART.
	OwnNames bool
	// Tables is the number of trajectories in the table of each step and split. Default 16; negative makes none.
	Tables int
	// APIKey sends the rows to the server as they are made. Empty only writes files.
	APIKey string
	// BaseURL is the server. Default: the environment variable WANDB_BASE_URL, and without it https://api.wandb.ai.
	BaseURL string
	// Timeout bounds a request to the server, and [Tracker.Close]. Default 10 s.
	Timeout time.Duration
	// Config is added to the configuration. What is named or looks like a secret is redacted.
	Config map[string]any
	// Logger is told of failures and of what is dropped. nil is silent.
	Logger *slog.Logger
}

// Tracker writes W&B runs. See the documentation of the package.
type Tracker struct{ t *track.Tracker }

// New starts a tracker. opts may be nil. An error says that the folder cannot be made.
func New(opts *Options) (*Tracker, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.Dir, o.Tables = cmp.Or(o.Dir, "wandb"), cmp.Or(o.Tables, 16)
	o.BaseURL = strings.TrimRight(cmp.Or(o.BaseURL, os.Getenv("WANDB_BASE_URL"), "https://api.wandb.ai"), "/")
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(o.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("wandb: %w", err)
	}
	return &Tracker{track.New(track.Options{
		Name: "wandb", Config: o.Config, Logger: o.Logger, Timeout: o.Timeout,
		Open: func(_ context.Context, m *art.Model) (track.Run, error) {
			file, err := openOffline(o, m)
			if err != nil || o.APIKey == "" {
				return file, err
			}
			return newLive(file), nil
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

// runID returns the id of a run: the name of the model, without what W&B does not take in an id.
func runID(name string) (string, error) {
	id := strings.Map(func(c rune) rune {
		if strings.ContainsRune(`/\#?%: `, c) {
			return '-'
		}
		return c
	}, name)
	if len(id) > 128 {
		return "", errors.New("wandb: the name of the model has more than 128 bytes, which W&B does not take as an id")
	}
	return id, nil
}
