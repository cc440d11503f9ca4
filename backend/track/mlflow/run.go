package mlflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goart-dev/art/internal/track"
)

// tagRun marks the runs of this tracker.
const tagRun = "art.run"

// Limits of a request to log-batch, and of the value of a parameter.
const (
	maxMetrics = 1000
	maxParams  = 100
	maxValue   = 6000
	maxPages   = 1000 // of the history of a metric
)

// run is a [track.Run] on the server.
type run struct {
	c              *client
	artifacts      bool
	experiment, id string
	params         map[string]bool // that are set: a parameter is written once
	written        track.Values    // by the names of the server
	unsure         bool            // the server may have metrics of a request that failed
}

// info is what the server tells of a run.
type info struct {
	Info struct {
		ID string `json:"run_id"`
	} `json:"info"`
	Data struct {
		Metrics []metric `json:"metrics"`
		Params  []pair   `json:"params"`
	} `json:"data"`
}

// pair is a parameter or a tag.
type pair struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// metric is a value at a step.
type metric struct {
	Key   string `json:"key"`
	Value number `json:"value"`
	Time  int64  `json:"timestamp"` // ms
	Step  int    `json:"step"`
}

// number is a float64 that is text in JSON where JSON has no number for it.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	return json.Marshal(track.Number(float64(n)))
}

func (n *number) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	x, err := strconv.ParseFloat(text, 64)
	*n = number(x)
	return err
}

// open finds the newest run of a name, or makes one.
func (r *run) open(ctx context.Context, experiment, name string) error {
	if err := r.findExperiment(ctx, experiment); err != nil {
		return err
	}
	var found struct {
		Runs []info `json:"runs"`
	}
	err := r.c.call(ctx, "runs/search", map[string]any{
		"experiment_ids": []string{r.experiment}, "max_results": 1, "order_by": []string{"attributes.start_time DESC"},
		"filter": "tags.`" + tagRun + "` = '" + escape(name) + "'",
	}, &found)
	if err != nil {
		return err
	}
	if len(found.Runs) > 0 {
		r.id = found.Runs[0].Info.ID
		return r.c.call(ctx, "runs/update", map[string]any{"run_id": r.id, "status": "RUNNING"}, nil)
	}
	var made struct {
		Run info `json:"run"`
	}
	err = r.c.call(ctx, "runs/create", map[string]any{
		"experiment_id": r.experiment, "run_name": name, "start_time": time.Now().UnixMilli(),
		"tags": []pair{{tagRun, escape(name)}},
	}, &made)
	r.id = made.Run.Info.ID
	return err
}

// escape writes a name so that it can be quoted in a filter, which has no escapes.
func escape(name string) string { return url.QueryEscape(name) }

// findExperiment finds an experiment, or makes it.
func (r *run) findExperiment(ctx context.Context, name string) error {
	var found struct {
		Experiment struct {
			ID string `json:"experiment_id"`
		} `json:"experiment"`
	}
	query := url.Values{"experiment_name": {name}}
	err := r.c.get(ctx, "experiments/get-by-name", query, &found)
	var failure *apiError
	if errors.As(err, &failure) && failure.Code == "RESOURCE_DOES_NOT_EXIST" {
		var made struct {
			ID string `json:"experiment_id"`
		}
		err = r.c.call(ctx, "experiments/create", map[string]any{"name": name}, &made)
		found.Experiment.ID = made.ID
		if errors.As(err, &failure) && failure.Code == "RESOURCE_ALREADY_EXISTS" { // by another process, since
			err = r.c.get(ctx, "experiments/get-by-name", query, &found)
		}
	}
	r.experiment = found.Experiment.ID
	return err
}

func (r *run) Written(ctx context.Context) (track.Values, error) {
	var found struct {
		Run info `json:"run"`
	}
	if err := r.c.get(ctx, "runs/get", url.Values{"run_id": {r.id}}, &found); err != nil {
		return nil, err
	}
	r.params = map[string]bool{}
	for _, p := range found.Run.Data.Params {
		r.params[p.Key] = true
	}
	values := track.Values{}
	for _, newest := range found.Run.Data.Metrics {
		if err := r.readMetric(ctx, newest.Key, values); err != nil {
			return nil, err
		}
	}
	r.written = values
	return values, nil
}

// readMetric adds all values of a metric.
func (r *run) readMetric(ctx context.Context, key string, values track.Values) error {
	query := url.Values{"run_id": {r.id}, "metric_key": {key}, "max_results": {"25000"}}
	for range maxPages {
		var page struct {
			Metrics []metric `json:"metrics"`
			Next    string   `json:"next_page_token"`
		}
		if err := r.c.get(ctx, "metrics/get-history", query, &page); err != nil {
			return err
		}
		for _, m := range page.Metrics {
			if values[m.Step] == nil {
				values[m.Step] = map[string]float64{}
			}
			values[m.Step][m.Key] = float64(m.Value)
		}
		if page.Next == "" {
			return nil
		}
		query.Set("page_token", page.Next)
	}
	return fmt.Errorf("mlflow: the history of %.100q has more than %d pages", key, maxPages)
}

// Config implements [track.Run]. A parameter is written once; the first value stays.
func (r *run) Config(ctx context.Context, config map[string]any) error {
	flat := track.Flatten(config)
	var params []pair
	for _, key := range slices.Sorted(maps.Keys(flat)) {
		name, value := nameOf(key), fmt.Sprint(flat[key])
		if !r.params[name] && value != "" {
			params = append(params, pair{name, value[:min(len(value), maxValue)]})
		}
	}
	for batch := range slices.Chunk(params, maxParams) {
		if err := r.c.call(ctx, "runs/log-batch", map[string]any{"run_id": r.id, "params": batch}, nil); err != nil {
			return err
		}
		for _, p := range batch {
			r.params[p.Key] = true
		}
	}
	return nil
}

// nameOf replaces the characters that MLflow does not take in a key.
func nameOf(key string) string {
	return strings.Map(func(c rune) rune {
		word := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if word || strings.ContainsRune("_-. :/", c) {
			return c
		}
		return '_'
	}, key)
}

// Rows implements [track.Run]. After a request that failed it asks first for what the server has taken all the same:
// when only the answer was lost, or a part was sent.
func (r *run) Rows(ctx context.Context, rows []track.Row) error {
	var metrics []metric // that no earlier process has stored
	for _, row := range rows {
		for _, key := range slices.Sorted(maps.Keys(row.Metrics)) {
			name := nameOf(key)
			if _, ok := r.written[row.Step][name]; !ok {
				metrics = append(metrics, metric{name, number(row.Metrics[key]), row.Time.UnixMilli(), row.Step})
			}
		}
	}
	if r.unsure {
		var err error
		if metrics, err = r.untaken(ctx, metrics); err != nil {
			return err
		}
	}
	for batch := range slices.Chunk(metrics, maxMetrics) {
		r.unsure = true
		if err := r.c.call(ctx, "runs/log-batch", map[string]any{"run_id": r.id, "metrics": batch}, nil); err != nil {
			return err
		}
	}
	r.unsure = false
	return nil
}

// untaken returns the metrics that the server lacks.
func (r *run) untaken(ctx context.Context, metrics []metric) ([]metric, error) {
	has, asked := track.Values{}, map[string]bool{}
	for _, m := range metrics {
		if asked[m.Key] {
			continue
		}
		asked[m.Key] = true
		if err := r.readMetric(ctx, m.Key, has); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(metrics, func(m metric) bool {
		x, ok := has[m.Step][m.Key]
		special := math.IsNaN(float64(m.Value)) || math.IsInf(float64(m.Value), 0) // which the server may store as another
		return ok && (special || x == float64(m.Value))
	}), nil
}

// Groups implements [track.Run]: an artifact trajectories/SPLIT/STEP.json, in the form of [art.TrajectoryGroup]'s JSON.
func (r *run) Groups(ctx context.Context, g track.Groups) error {
	if !r.artifacts {
		return nil
	}
	groups := make([][]byte, len(g.Groups))
	for i, group := range g.Groups {
		if group == nil {
			groups[i] = []byte("null")
			continue
		}
		data, err := group.MarshalJSON() // json.Marshal would read through what that writes
		if err != nil {
			return err
		}
		groups[i] = data
	}
	path := fmt.Sprintf("/api/2.0/mlflow-artifacts/artifacts/%s/%s/artifacts/trajectories/%s/%06d.json",
		url.PathEscape(r.experiment), url.PathEscape(r.id), url.PathEscape(g.Split), g.Step)
	return r.c.do(ctx, http.MethodPut, path, track.AppendArray(nil, groups), nil)
}

func (r *run) Close(ctx context.Context, failed bool) error {
	status := "FINISHED"
	if failed {
		status = "FAILED"
	}
	return r.c.call(ctx, "runs/update",
		map[string]any{"run_id": r.id, "status": status, "end_time": time.Now().UnixMilli()}, nil)
}
