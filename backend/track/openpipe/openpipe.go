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
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
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
	encoder := track.NewEncoder(func(m *art.Message) ([]byte, error) { return m.MarshalJSON() })
	reporter := &reporter{r, t.opts.Metadata, encoder, map[int]json.RawMessage{}}
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

// report is what POST /report is told of a completion.
type report struct {
	messages [][]byte // of the request
	request  request
	outcome  outcome
}

// request has the fields of a request of OpenAI's chat API other than its messages. At least one is not left out.
type request struct {
	Model    string          `json:"model"`
	Tools    json.RawMessage `json:"tools,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	art.Sampling
	// In place of those of Sampling: 0 is off.
	TopK      int `json:"top_k,omitempty"`
	MaxTokens int `json:"max_tokens,omitempty"`
}

// outcome has the other fields of a report.
type outcome struct {
	Requested int64     `json:"requestedAt"` // ms
	Received  int64     `json:"receivedAt"`  // ms
	Response  *response `json:"respPayload,omitempty"`
	Status    int       `json:"statusCode"`
	Error     string    `json:"errorMessage,omitempty"`
}

// response is a reply of OpenAI's chat API.
type response struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   usage    `json:"usage"`
}

type choice struct {
	Index   int             `json:"index"`
	Message json.RawMessage `json:"message"`
	Finish  string          `json:"finish_reason"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// Limits of metadata in OpenAI's API, whose form it has.
const (
	maxEntries = 16
	maxKey     = 64
	maxText    = 512
)

// reporter makes the reports of one rollout, or of a completion outside of one.
type reporter struct {
	rollout  *track.Rollout // nil for none
	more     map[string]string
	encoder  *track.Encoder
	metadata map[int]json.RawMessage // by the step of the policy, which is all that differs within a rollout; -1 for none
}

// report tells of a completion.
func (r *reporter) report(e art.CompletionEvent) (report, error) {
	messages, err := r.encoder.Messages(e.Request.Messages)
	if err != nil {
		return report{}, err
	}
	s := e.Request.Settings
	out := report{messages: messages, request: request{
		Model: e.Model.Name(), Sampling: s, TopK: s.TopK, MaxTokens: s.MaxTokens,
	}}
	if out.request.Metadata, err = r.metadataOf(e); err != nil {
		return report{}, err
	}
	if len(e.Request.Tools) > 0 {
		if out.request.Tools, err = r.encoder.Tools(e.Request.Tools); err != nil {
			return report{}, err
		}
	}
	out.outcome, err = r.outcome(e)
	return out, err
}

// metadataOf returns the metadata of a completion; nil for none.
func (r *reporter) metadataOf(e art.CompletionEvent) (json.RawMessage, error) {
	step := -1
	if e.Response != nil && e.Response.Message.Sample != nil {
		step = e.Response.Message.Sample.Step
	}
	data, ok := r.metadata[step]
	if ok {
		return data, nil
	}
	list := metadata(step, r.rollout, r.more)
	var err error
	if len(list) > 0 {
		data, err = json.Marshal(list)
	}
	r.metadata[step] = data
	return data, err
}

func (r *reporter) outcome(e art.CompletionEvent) (outcome, error) {
	out := outcome{
		Requested: e.Time.UnixMilli(), Received: e.Time.Add(e.Duration).UnixMilli(), Status: http.StatusOK,
	}
	if e.Err != nil {
		out.Status, out.Error = http.StatusInternalServerError, e.Err.Error()
		return out, nil
	}
	message, err := r.encoder.Message(&e.Response.Message)
	prompt, completion := e.Response.Usage.PromptTokens, e.Response.Usage.CompletionTokens
	out.Response = &response{
		ID: e.Response.ID, Object: "chat.completion", Created: e.Time.Unix(), Model: e.Response.Model,
		Choices: []choice{{0, message, e.Response.Finish}}, Usage: usage{prompt, completion, prompt + completion},
	}
	return out, err
}

// body is the JSON of a report.
func (r *report) body() ([]byte, error) {
	request, err := json.Marshal(r.request)
	if err != nil {
		return nil, err
	}
	outcome, err := json.Marshal(r.outcome)
	size := len(request) + len(outcome) + 64
	for _, m := range r.messages {
		size += len(m) + 1
	}
	b := append(make([]byte, 0, size), `{"reqPayload":{"messages":`...)
	b = track.AppendArray(b, r.messages)
	for _, object := range [][]byte{request, outcome} {
		b = append(append(b, ','), object[1:]...)
	}
	return b, err
}

// metadata are texts to find a completion by: those of the options, the step of the policy unless it is -1, the reward
// and the place of the rollout, and then what the trajectory has, in the order of names, as far as there is room.
func metadata(step int, r *track.Rollout, more map[string]string) map[string]string {
	out := map[string]string{}
	add := func(key, value string) {
		if _, taken := out[key]; !taken && len(out) < maxEntries && len(key) <= maxKey {
			runes := []rune(value)
			out[key] = string(runes[:min(len(runes), maxText)])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(more)) {
		add(key, more[key])
	}
	if step >= 0 {
		add("policy_step", strconv.Itoa(step))
	}
	if r == nil {
		return out
	}
	add("scenario", strconv.Itoa(r.Start.Scenario))
	add("attempt", strconv.Itoa(r.Start.Attempt))
	if r.End == nil {
		return out
	}
	if r.End.Failure != nil {
		add("failure", r.End.Failure.Type)
	}
	if t := r.End.Trajectory; t != nil {
		if !math.IsNaN(t.Reward) {
			add("reward", number(t.Reward))
		}
		for _, key := range slices.Sorted(maps.Keys(t.Metrics)) {
			add(key, number(t.Metrics[key]))
		}
		for _, key := range slices.Sorted(maps.Keys(t.Metadata)) {
			add(key, fmt.Sprint(t.Metadata[key]))
		}
	}
	return out
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
