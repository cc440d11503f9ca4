package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/dash"
	"github.com/goart-dev/art/backend/track/mlflow"
	"github.com/goart-dev/art/backend/track/openpipe"
	"github.com/goart-dev/art/backend/track/otel"
	"github.com/goart-dev/art/backend/track/prometheus"
	"github.com/goart-dev/art/backend/track/tensorboard"
	"github.com/goart-dev/art/backend/track/terminal"
	"github.com/goart-dev/art/backend/track/wandb"
)

// tracker is one that is closed, and that may lose something.
type tracker interface {
	Events() *art.Events
	Dropped() int
	Close() error
}

// trackers are all of them, with every option that costs something.
type trackers struct {
	events *art.Events
	list   map[string]tracker
	page   *dash.Server
}

// openTrackers opens all trackers. url is that of the services.
func openTrackers(dir, url string) (*trackers, error) {
	const wait = time.Minute
	all := &trackers{list: map[string]tracker{}, events: terminal.New(&terminal.Options{Output: io.Discard})}
	var problems []error
	add := func(name string, t tracker, err error) {
		problems = append(problems, err)
		if err == nil {
			all.list[name] = t
			all.events = art.JoinEvents(all.events, t.Events())
		}
	}
	runs, err := wandb.New(&wandb.Options{Dir: filepath.Join(dir, "wandb"), APIKey: "key", BaseURL: url, Timeout: wait})
	add("wandb", runs, err)
	board, err := tensorboard.New(&tensorboard.Options{Dir: filepath.Join(dir, "tensorboard")})
	add("tensorboard", board, err)
	flow, err := mlflow.New(&mlflow.Options{URL: url, Timeout: wait})
	add("mlflow", flow, err)
	spans, err := otel.New(&otel.Options{
		URL: url + "/v1/traces", MetricsURL: url + "/v1/metrics", Content: true, Timeout: wait,
	})
	add("otel", spans, err)
	requests, err := openpipe.New(&openpipe.Options{APIKey: "key", BaseURL: url, Timeout: wait})
	add("openpipe", requests, err)
	watch := prometheus.New(nil)
	problems = append(problems, client.NewRegistry().Register(watch))
	all.page, err = dash.Start("127.0.0.1:0", &dash.Options{Dir: dir})
	problems = append(problems, err)
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	all.events = art.JoinEvents(all.events, watch.Events(), all.page.Events())
	return all, nil
}

// close sends what waits. What was lost is an error: the measurement would be of less work.
func (t *trackers) close() error {
	problems := []error{t.page.Close()}
	for name, one := range t.list {
		problems = append(problems, one.Close())
		if n := one.Dropped(); n > 0 {
			problems = append(problems, fmt.Errorf("%s lost %d events: measure with fewer rollouts", name, n))
		}
	}
	return errors.Join(problems...)
}
