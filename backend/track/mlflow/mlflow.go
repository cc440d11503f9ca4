// Package mlflow logs runs to an MLflow server by its REST API: metrics, the configuration as parameters, and the
// trajectories of each step as artifacts in JSON.
//
//	flow, err := mlflow.New(&mlflow.Options{URL: "http://localhost:5000"})
//	defer flow.Close()
//	model := art.NewModel("player", &art.ModelOptions{Events: flow.Events()})
//
// The project of a model is the experiment, and its name that of the run. A resumed run continues the newest run of its
// name: the server is asked what it has, and gets what it lacks. MLflow cannot take a value back: where a step is made
// again after a kill, the first value stays. Traces are those of package otel, see otel.MLflow.
package mlflow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/secret"
	"github.com/goart-dev/art/internal/track"
)

// Options of [New]. Zero values are the defaults.
type Options struct {
	// URL of the server. Default: the environment variable MLFLOW_TRACKING_URI.
	URL string
	// Token is sent as a bearer token. Default: MLFLOW_TRACKING_TOKEN; without it MLFLOW_TRACKING_USERNAME and
	// MLFLOW_TRACKING_PASSWORD, and without those nothing.
	Token string
	// Experiment defaults to the project of the model.
	Experiment string
	// Config is added to the parameters. What is named or looks like a secret is redacted.
	Config map[string]any
	// Artifacts is false for a server that does not serve artifacts. nil is true.
	Artifacts *bool
	// Timeout bounds a request, and [Tracker.Close]. Default 10 s.
	Timeout time.Duration
	// Logger is told of failures and of what is dropped. nil is silent.
	Logger *slog.Logger
}

// Tracker logs to a server. See the documentation of the package.
type Tracker struct{ t *track.Tracker }

// New starts a tracker. opts may be nil. An error says what is wrong with opts; that nobody answers is none.
func New(opts *Options) (*Tracker, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.URL = strings.TrimRight(cmp.Or(o.URL, os.Getenv("MLFLOW_TRACKING_URI")), "/")
	if !strings.HasPrefix(o.URL, "http://") && !strings.HasPrefix(o.URL, "https://") {
		return nil, fmt.Errorf("mlflow: the URL is %q: set Options.URL or MLFLOW_TRACKING_URI to that of a server, "+
			"such as http://localhost:5000", o.URL)
	}
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	c := &client{url: o.URL, http: secret.Client(&http.Client{Timeout: o.Timeout}), authorize: authorization(o.Token)}
	return &Tracker{track.New(track.Options{
		Name: "mlflow", Config: o.Config, Logger: o.Logger, Timeout: o.Timeout,
		Open: func(ctx context.Context, m *art.Model) (track.Run, error) {
			r := &run{c: c, artifacts: o.Artifacts == nil || *o.Artifacts}
			return r, r.open(ctx, cmp.Or(o.Experiment, m.Options().Project), m.Name())
		},
	})}, nil
}

// Events returns the callbacks of the tracker, for [art.ModelOptions].
func (t *Tracker) Events() *art.Events { return t.t.Events() }

// Dropped returns how many events were not sent because too many waited. Their metrics are sent later where the backend
// keeps a history.
func (t *Tracker) Dropped() int { return t.t.Dropped() }

// Close sends what waits, for [Options].Timeout at most, and the end of each run. The error says what was not sent.
func (t *Tracker) Close() error { return t.t.Close() }

// client calls the REST API.
type client struct {
	url       string
	http      *http.Client
	authorize func(*http.Request)
}

// authorization returns how requests say who they are.
func authorization(token string) func(*http.Request) {
	token = cmp.Or(token, os.Getenv("MLFLOW_TRACKING_TOKEN"))
	user, password := os.Getenv("MLFLOW_TRACKING_USERNAME"), os.Getenv("MLFLOW_TRACKING_PASSWORD")
	return func(r *http.Request) {
		switch {
		case token != "":
			r.Header.Set("Authorization", "Bearer "+token)
		case user != "":
			r.SetBasicAuth(user, password)
		}
	}
}

// apiError is an answer that is not a success.
type apiError struct {
	Status  int    `json:"-"`
	Code    string `json:"error_code"`
	Message string `json:"message"`
}

func (e *apiError) Error() string {
	return fmt.Sprintf("status %d: %s: %s", e.Status, e.Code, e.Message)
}

// call posts in to an endpoint of the API and reads the answer into out, which may be nil.
func (c *client) call(ctx context.Context, endpoint string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, "/api/2.0/mlflow/"+endpoint, body, out)
}

// get asks an endpoint of the API.
func (c *client) get(ctx context.Context, endpoint string, query url.Values, out any) error {
	return c.do(ctx, http.MethodGet, "/api/2.0/mlflow/"+endpoint+"?"+query.Encode(), nil, out)
}

func (c *client) do(ctx context.Context, method, path string, body []byte, out any) error {
	endpoint, _, _ := strings.Cut(path, "?")
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	c.authorize(req)
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("mlflow: %s: %w", endpoint, secret.WithoutURL(err))
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		failure := &apiError{Status: res.StatusCode}
		if json.Unmarshal(answer, failure) != nil {
			failure.Message = string(answer[:min(len(answer), 200)])
		}
		return fmt.Errorf("mlflow: %s: %w", endpoint, failure)
	}
	if out == nil {
		return nil
	}
	return secret.HideError(json.Unmarshal(answer, out), secret.OfHeader(req.Header)) // a number that is none is quoted
}
