// Package openpipe writes what a model was asked and answered into the request log of OpenPipe, by POST /report of its
// published API: a report for each completion, with the reward of its rollout as metadata.
//
//	log, err := openpipe.New(&openpipe.Options{APIKey: key})
//	defer log.Close()
//	model := art.NewModel("player", &art.ModelOptions{Events: log.Events()})
//	groups, err := art.GatherGroups(ctx, scenarios, play, &art.GatherOptions{Events: log.Events()})
//
// The model's events tell of completions and the gather's of rollouts. A completion within a rollout is reported when
// its group is complete and judged, others at once. A request log is what was said: unlike the spans of package otel, a
// report cannot leave it out.
//
// The form of a report is that of the OpenAPI document of version 0.1.1 and of what the Python client openpipe 5.0.0
// was recorded to send. That client is archived, and whether the hosted service still takes reports could not be
// tested. BaseURL names another server with the same route.
package openpipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/track"
)

// Options of [New]. Zero values are the defaults.
type Options struct {
	// APIKey of the project. Default: the environment variable OPENPIPE_API_KEY. Required.
	APIKey string
	// BaseURL is where "/report" is. Default: OPENPIPE_BASE_URL, and without it https://api.openpipe.ai/api/v1.
	BaseURL string
	// Metadata is added to that of each report, such as prompt_id. A report has at most 16 entries.
	Metadata map[string]string
	// Timeout bounds a request, and [Tracker.Close]. Default 10 s.
	Timeout time.Duration
	// Logger is told of failures and of what is dropped. nil is silent.
	Logger *slog.Logger
}

// How many reports may wait, and how many are sent at once.
const (
	maxReports = 4096
	senders    = 8
)

// Tracker reports completions. See the documentation of the package.
type Tracker struct {
	opts    Options
	headers map[string]string
	out     *track.Exporter[report]
}

// New starts a tracker. opts may be nil. An error says what is wrong with opts; that nobody answers is none.
func New(opts *Options) (*Tracker, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.APIKey = cmp.Or(o.APIKey, os.Getenv("OPENPIPE_API_KEY"))
	if o.APIKey == "" {
		return nil, errors.New("openpipe: no key: set Options.APIKey or OPENPIPE_API_KEY to that of the project")
	}
	o.BaseURL = cmp.Or(o.BaseURL, os.Getenv("OPENPIPE_BASE_URL"), "https://api.openpipe.ai/api/v1")
	o.BaseURL = strings.TrimRight(o.BaseURL, "/")
	if !strings.HasPrefix(o.BaseURL, "http://") && !strings.HasPrefix(o.BaseURL, "https://") {
		return nil, fmt.Errorf("openpipe: Options.BaseURL is %q: write it like https://api.openpipe.ai/api/v1", o.BaseURL)
	}
	o.Metadata = maps.Clone(o.Metadata)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	t := &Tracker{opts: o, headers: map[string]string{"Authorization": "Bearer " + o.APIKey}}
	t.out = track.NewExporter(track.ExporterOptions[report]{
		Name: "openpipe", Items: "reports", Waiting: maxReports, Senders: senders, Timeout: o.Timeout, Logger: o.Logger,
		Rollout: func(r *track.Rollout) ([]report, int, error) { return t.reports(r, r.Completions...) },
		Lone:    func(e art.CompletionEvent) ([]report, int, error) { return t.reports(nil, e) },
		Send:    func(ctx context.Context, reports []report) (int, error) { return t.send(ctx, reports[0]) },
	})
	return t, nil
}

// Events returns the callbacks of the tracker, for [art.ModelOptions] and [art.GatherOptions].
func (t *Tracker) Events() *art.Events { return t.out.Events() }

// Dropped returns how many events, and how many reports, were lost: because too many waited, or because the service did
// not take them.
func (t *Tracker) Dropped() int { return t.out.Dropped() }

// Close reports what waits, for [Options].Timeout at most. The error says what was lost. A second call returns the
// same.
func (t *Tracker) Close() error { return t.out.Close() }

// reports makes the reports of completions of a rollout, which is nil for none.
func (t *Tracker) reports(r *track.Rollout, list ...art.CompletionEvent) (out []report, lost int, err error) {
	reporter := newReporter(r, t.opts.Metadata)
	for _, e := range list {
		one, problem := reporter.report(e)
		if problem != nil {
			lost, err = lost+1, fmt.Errorf("a completion was not reported: %w", problem)
			continue
		}
		out = append(out, one)
	}
	return out, lost, err
}

// send posts a report.
func (t *Tracker) send(ctx context.Context, r report) (lost int, err error) {
	ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
	defer cancel()
	body, err := r.body()
	if err == nil {
		err = track.Post(ctx, t.opts.BaseURL+"/report", t.headers, body)
	}
	if err != nil {
		return 1, fmt.Errorf("a completion was not reported: %w", err)
	}
	return 0, nil
}
