package mlflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/track/otel"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/secret"
)

// fake answers as MLflow 3.17 does. TestTracker_Server holds it to that.
type fake struct {
	status int // of all answers but those to GET; 0 is as it should be
	lost   int // so many answers are lost, after metrics were stored

	mu        sync.Mutex
	name      string
	runs      int
	state     map[string]any // of the newest run
	tag       string
	params    map[string]string
	metrics   map[string][]metric
	artifacts map[string]string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.status != 0 {
		w.WriteHeader(f.status)
		return
	}
	body, _ := io.ReadAll(req.Body)
	path, ok := strings.CutPrefix(req.URL.Path, "/api/2.0/mlflow-artifacts/artifacts/")
	if ok && req.Method == http.MethodPut {
		f.artifacts[path] = string(body)
		return
	}
	var in map[string]any
	_ = json.Unmarshal(body, &in)
	answer, code := f.answer(strings.TrimPrefix(req.URL.Path, "/api/2.0/mlflow/"), req.URL.Query(), in, body)
	if _, ok := in["metrics"]; ok && f.lost > 0 {
		f.lost--
		panic(http.ErrAbortHandler)
	}
	if code != "" {
		w.WriteHeader(http.StatusNotFound)
		answer = map[string]any{"error_code": code, "message": "no"}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func (f *fake) answer(endpoint string, query url.Values, in map[string]any, body []byte) (answer any, code string) {
	runInfo := map[string]any{"info": map[string]any{"run_id": fmt.Sprint("r", f.runs), "status": f.state["status"]}}
	switch endpoint {
	case "experiments/get-by-name":
		if f.name != query.Get("experiment_name") {
			return nil, "RESOURCE_DOES_NOT_EXIST"
		}
		return map[string]any{"experiment": map[string]any{"experiment_id": "7"}}, ""
	case "experiments/create":
		f.name = in["name"].(string)
		return map[string]any{"experiment_id": "7"}, ""
	case "runs/search":
		if f.runs == 0 || in["filter"] != "tags.`art.run` = '"+f.tag+"'" {
			return map[string]any{}, ""
		}
		return map[string]any{"runs": []any{runInfo}}, ""
	case "runs/create":
		f.runs++
		f.tag = in["tags"].([]any)[0].(map[string]any)["value"].(string)
		return map[string]any{"run": map[string]any{"info": map[string]any{"run_id": fmt.Sprint("r", f.runs)}}}, ""
	case "runs/update":
		f.state = in
		return map[string]any{}, ""
	case "runs/get":
		metrics, params := []metric{}, []pair{}
		for _, list := range f.metrics {
			metrics = append(metrics, list[len(list)-1])
		}
		for key, value := range f.params {
			params = append(params, pair{key, value})
		}
		runInfo["data"] = map[string]any{"metrics": metrics, "params": params}
		return map[string]any{"run": runInfo}, ""
	case "metrics/get-history":
		return map[string]any{"metrics": f.metrics[query.Get("metric_key")]}, ""
	case "runs/log-batch":
		return map[string]any{}, f.log(body)
	}
	return nil, "ENDPOINT_NOT_FOUND"
}

func (f *fake) log(body []byte) (code string) {
	var in struct {
		Metrics []metric
		Params  []pair
	}
	if json.Unmarshal(body, &in) != nil || len(in.Metrics) > 1000 || len(in.Params) > 100 {
		return "INVALID_PARAMETER_VALUE"
	}
	for _, p := range in.Params {
		if old, ok := f.params[p.Key]; ok && old != p.Value {
			return "INVALID_PARAMETER_VALUE"
		}
		f.params[p.Key] = p.Value
	}
	for _, m := range in.Metrics {
		if math.IsInf(float64(m.Value), 1) {
			m.Value = math.MaxFloat64
		}
		f.metrics[m.Key] = append(f.metrics[m.Key], m)
	}
	return ""
}

func newFake(t *testing.T) (*fake, string) {
	f := &fake{params: map[string]string{}, metrics: map[string][]metric{}, artifacts: map[string]string{}}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return f, server.URL
}

// train makes steps with rewards 0, 1, ... and logs one of another split.
func train(t *testing.T, o *Options, steps int) error {
	t.Helper()
	flow, err := New(o)
	require.NoError(t, err)
	m := art.NewModel("player's", &art.ModelOptions{Project: "games", Events: flow.Events()})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{}))
	for reward := range steps {
		g := &art.TrajectoryGroup{Trajectories: []*art.Trajectory{{Reward: float64(reward)}}}
		_, err := m.Train(t.Context(), []*art.TrajectoryGroup{g}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, m.Log(t.Context(), "val", nil, map[string]float64{"odd % key": 1, "inf": math.Inf(1)}))
	return flow.Close()
}

// checkStored runs twice, the second time for longer, and compares what the server has.
func checkStored(t *testing.T, address string) {
	config := map[string]any{"api_key": "sk-secret-secret-secret", "note": "n"}
	o := &Options{URL: address, Config: config, Timeout: time.Minute}
	require.NoError(t, train(t, o, 3))
	require.NoError(t, train(t, o, 5))
	c := &client{url: address, http: http.DefaultClient, authorize: authorization("")}
	r := &run{c: c}
	require.NoError(t, r.open(t.Context(), "games", "player's"))
	var all struct {
		Runs []info `json:"runs"`
	}
	require.NoError(t, c.call(t.Context(), "runs/search", map[string]any{
		"experiment_ids": []string{r.experiment}, "filter": "tags.`art.run` = 'player%27s'"}, &all))
	require.Len(t, all.Runs, 1, "a second process continues the run")
	for key, want := range map[string][]float64{
		"train/reward": {0, 1, 2, 3, 4}, "val/inf": {math.MaxFloat64, math.MaxFloat64}, // as it stores infinity
	} {
		var history struct {
			Metrics []metric `json:"metrics"`
		}
		require.NoError(t, c.get(t.Context(), "metrics/get-history",
			url.Values{"run_id": {r.id}, "metric_key": {key}}, &history))
		var got []float64
		for _, m := range history.Metrics {
			got = append(got, float64(m.Value))
		}
		require.Equal(t, want, got, key)
	}
	values, err := r.Written(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1.0, values[3]["val/odd _ key"])
	var found struct {
		Run info `json:"run"`
	}
	require.NoError(t, c.get(t.Context(), "runs/get", url.Values{"run_id": {r.id}}, &found))
	params := map[string]string{}
	for _, p := range found.Run.Data.Params {
		params[p.Key] = p.Value
	}
	require.Equal(t, secret.Redacted, params["api_key"])
	require.Equal(t, "cispo", params["train/loss"])
	require.Equal(t, "n", params["note"])
}

// What was sent is on the server, once, also after a second process.
func TestTracker_Fake(t *testing.T) {
	f, address := newFake(t)
	checkStored(t, address)
	require.Equal(t, 1, f.runs)
	require.Contains(t, f.artifacts, "7/r1/artifacts/trajectories/train/000004.json")
	var groups []*art.TrajectoryGroup
	require.NoError(t, json.Unmarshal([]byte(f.artifacts["7/r1/artifacts/trajectories/train/000004.json"]), &groups))
	require.Equal(t, 4.0, groups[0].Trajectories[0].Reward)
}

// The same with MLflow's own server:
//
//	python3 -m venv VENV && VENV/bin/pip install mlflow==3.17.2
//	ART_MLFLOW_PYTHON=VENV/bin/python go test ./backend/track/mlflow -run TestTracker_Server
func TestTracker_Server(t *testing.T) {
	python := os.Getenv("ART_MLFLOW_PYTHON")
	if python == "" {
		t.Skip("ART_MLFLOW_PYTHON is not set: the interpreter of a virtual environment with mlflow")
	}
	address, err := startServer(t, python)
	require.NoError(t, err)
	checkStored(t, address)
	c := &client{url: address, http: http.DefaultClient, authorize: authorization("")}
	r := &run{c: c}
	require.NoError(t, r.open(t.Context(), "games", "player's"))
	var artifacts struct {
		Files []struct {
			Path string `json:"path"`
		} `json:"files"`
	}
	require.NoError(t, c.get(t.Context(), "artifacts/list",
		url.Values{"run_id": {r.id}, "path": {"trajectories/train"}}, &artifacts))
	require.Len(t, artifacts.Files, 5)
	checkTraces(t, address, r.experiment)
}

// checkTraces sends a completion as a trace by package otel, and finds it on the server.
func checkTraces(t *testing.T, address, experiment string) {
	spans, err := otel.New(otel.MLflow(address, experiment))
	require.NoError(t, err)
	m := art.NewModel("player", &art.ModelOptions{Events: spans.Events()})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{}))
	_, err = m.Complete(t.Context(), &art.History{Messages: []art.Message{art.User("?")}}, nil)
	require.NoError(t, err)
	require.NoError(t, spans.Close())
	var found struct {
		Traces []struct {
			ID       string            `json:"trace_id"`
			State    string            `json:"state"`
			Metadata map[string]string `json:"trace_metadata"`
		} `json:"traces"`
	}
	c := &client{url: address, http: http.DefaultClient, authorize: authorization("")}
	body := fmt.Sprintf(
		`{"locations":[{"type":"MLFLOW_EXPERIMENT","mlflow_experiment":{"experiment_id":%q}}]}`, experiment)
	require.NoError(t, c.do(t.Context(), http.MethodPost, "/api/3.0/mlflow/traces/search", []byte(body), &found))
	require.Len(t, found.Traces, 1)
	require.Equal(t, "OK", found.Traces[0].State)
	require.Contains(t, found.Traces[0].Metadata["mlflow.trace.tokenUsage"], "output_tokens")
}

// startServer starts MLflow, which takes a while, and waits until it answers.
func startServer(t *testing.T, python string) (address string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, listener.Close())
	cmd := exec.CommandContext(t.Context(), python, "-m", "mlflow", "server", "--backend-store-uri", "sqlite:///m.db",
		"--artifacts-destination", "./artifacts", "--host", "127.0.0.1", "--port", port, "--workers", "1")
	cmd.Dir = t.TempDir()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		return "", err
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the context of the test has ended by then
	address = "http://127.0.0.1:" + port
	for range 1200 {
		res, err := http.Get(address + "/health")
		if err == nil {
			res.Body.Close()
			return address, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return "", errors.New("MLflow does not answer")
}

// A server that answers 500 or hangs costs training nothing, and Close says what was not sent.
func TestTracker_Failures(t *testing.T) {
	broken, address := newFake(t)
	broken.status = http.StatusInternalServerError
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	for name, address := range map[string]string{"500": address, "hangs": hanging.URL} {
		start := time.Now()
		err := train(t, &Options{URL: address, Timeout: 200 * time.Millisecond}, 20)
		require.ErrorContains(t, err, "were not stored", name)
		require.Less(t, time.Since(start), 10*time.Second, name)
	}
}

// A server that comes back gets everything.
func TestTracker_ComesBack(t *testing.T) {
	f, address := newFake(t)
	f.status = http.StatusServiceUnavailable
	flow, err := New(&Options{URL: address})
	require.NoError(t, err)
	m := art.NewModel("m", &art.ModelOptions{Events: flow.Events()})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{}))
	_, err = m.Train(t.Context(), []*art.TrajectoryGroup{{Trajectories: []*art.Trajectory{{Reward: 3}}}}, nil)
	require.NoError(t, err)
	f.mu.Lock()
	f.status = 0
	f.mu.Unlock()
	require.NoError(t, flow.Close())
	require.Len(t, f.metrics["train/reward"], 1)
	require.Equal(t, "FINISHED", f.state["status"])
}

// When only the answer was lost, nothing is stored twice, and what was not sent yet is.
func TestTracker_LostAnswers(t *testing.T) {
	f, address := newFake(t)
	f.lost = 1
	flow, err := New(&Options{URL: address, Timeout: time.Minute})
	require.NoError(t, err)
	m := art.NewModel("m", &art.ModelOptions{Events: flow.Events()})
	require.NoError(t, m.Register(t.Context(), &arttest.Backend{}))
	for reward := range 3 {
		values := map[string]float64{"own": float64(reward), "none": math.NaN(), "inf": math.Inf(1)}
		g := &art.TrajectoryGroup{Trajectories: []*art.Trajectory{{Reward: float64(reward), Metrics: values}}}
		_, err = m.Train(t.Context(), []*art.TrajectoryGroup{g}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, flow.Close())
	require.Zero(t, f.lost)
	require.Len(t, f.metrics["train/reward"], 3)
	for key, list := range f.metrics {
		steps := map[int]bool{}
		for _, m := range list {
			require.False(t, steps[m.Step], "%s at %d is there twice", key, m.Step)
			steps[m.Step] = true
		}
	}
}

// Without an address there is an error that says where to set it.
func TestNew_Errors(t *testing.T) {
	t.Setenv("MLFLOW_TRACKING_URI", "sqlite:///m.db")
	_, err := New(nil)
	require.ErrorContains(t, err, "Options.URL or MLFLOW_TRACKING_URI")
}
