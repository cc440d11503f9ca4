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
	"sync"
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

// How many events and reports may wait, and how many reports are sent at once.
const (
	maxEvents  = 4096
	maxReports = 4096
	senders    = 8
)

// Tracker reports completions. See the documentation of the package.
type Tracker struct {
	opts    Options
	headers map[string]string
	events  *track.Queue[any] // of callbacks
	reports *track.Queue[report]
	ctx     context.Context
	cancel  context.CancelFunc
	work    sync.WaitGroup
	closing sync.Once

	mu  sync.Mutex
	err error // of the last report that failed, and then of Close
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
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Tracker{
		opts: o, headers: map[string]string{"Authorization": "Bearer " + o.APIKey},
		events: track.NewQueue[any](maxEvents), reports: track.NewQueue[report](maxReports),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.work.Go(t.collect)
	for range senders {
		t.work.Go(t.send)
	}
	return t, nil
}

// Events returns the callbacks of the tracker, for [art.ModelOptions] and [art.GatherOptions].
func (t *Tracker) Events() *art.Events {
	return track.RolloutEvents(func(e any) {
		if !t.events.Send(e) && t.events.Lost() == 1 {
			t.opts.Logger.Warn("the request log is too slow: events are dropped")
		}
	})
}

// Dropped returns how many events, and how many reports, were lost: because too many waited, or because the service did
// not take them.
func (t *Tracker) Dropped() int { return t.events.Lost() + t.reports.Lost() }

// Close reports what waits, for [Options].Timeout at most. The error says what was lost. A second call returns the
// same.
func (t *Tracker) Close() error {
	t.closing.Do(func() {
		timer := time.AfterFunc(t.opts.Timeout, t.cancel)
		defer timer.Stop()
		t.events.Close()
		t.work.Wait()
		t.cancel()
		if n := t.Dropped(); n > 0 {
			t.opts.Logger.Warn("the request log is incomplete", "dropped", n)
			t.err = errors.Join(t.err, fmt.Errorf("openpipe: %d events or reports were lost", n))
		}
	})
	return t.err
}

// collect makes reports of events until Close.
func (t *Tracker) collect() {
	defer t.reports.Close()
	rollouts := track.NewRollouts(func(r *track.Rollout) {
		reports := newReporter(r, t.opts.Metadata)
		for _, e := range r.Completions {
			t.take(reports.report(e))
		}
	}, func(e art.CompletionEvent) { t.take(newReporter(nil, t.opts.Metadata).report(e)) })
	for {
		select {
		case e := <-t.events.Items():
			rollouts.Take(e)
		case <-t.events.Closed():
			for range len(t.events.Items()) {
				rollouts.Take(<-t.events.Items())
			}
			rollouts.Finish()
			return
		}
	}
}

// take queues a report.
func (t *Tracker) take(r report, err error) {
	if err != nil {
		t.failed(err)
		return
	}
	t.reports.Send(r)
}

// send posts reports until there are no more.
func (t *Tracker) send() {
	for {
		select {
		case r := <-t.reports.Items():
			t.post(r)
		case <-t.reports.Closed():
			for {
				select {
				case r := <-t.reports.Items():
					t.post(r)
				default:
					return
				}
			}
		}
	}
}

// post sends a report.
func (t *Tracker) post(r report) {
	ctx, cancel := context.WithTimeout(t.ctx, t.opts.Timeout)
	defer cancel()
	body, err := r.body()
	if err == nil {
		err = track.Post(ctx, t.opts.BaseURL+"/report", t.headers, body)
	}
	if err != nil {
		t.failed(err)
	}
}

// failed counts a report that was not sent.
func (t *Tracker) failed(err error) {
	t.reports.Lose(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.opts.Logger.Warn("a completion was not reported", "error", err)
	}
	t.err = fmt.Errorf("openpipe: a completion was not reported: %w", err)
}
